//! Users and groups: who asks, and which ids the names in a policy file have.

use uzers::{get_group_by_name, get_user_by_name, get_user_by_uid, get_user_groups};

/// A user who asks for something, as the kernel knows the user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Account {
    /// The user's id.
    pub uid: u32,
    /// The ids of all groups of the user: the primary and the supplementary ones.
    pub groups: Vec<u32>,
}

impl Account {
    /// Whether this is root, whom the policy does not restrict.
    pub const fn is_root(&self) -> bool {
        self.uid == 0
    }
}

/// Looks up the ids of users and groups by name.
pub trait Accounts {
    /// The id of a user; `None` if there is no user of this name.
    fn user_id(&self, name: &str) -> Option<u32>;

    /// The id of a group; `None` if there is no group of this name.
    fn group_id(&self, name: &str) -> Option<u32>;
}

/// The users and groups of this machine, with those from LDAP and other sources that `/etc/nsswitch.conf` lists.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemAccounts;

impl SystemAccounts {
    /// The user of this name with all groups; `None` if there is no such user, or if the groups cannot be listed. A
    /// running process of the user may have other groups: they are those from when the user logged in.
    pub fn account(&self, name: &str) -> Option<Account> {
        let user = get_user_by_name(name)?;
        let primary = user.primary_group_id();
        let mut groups = vec![primary];
        let listed = get_user_groups(user.name(), primary)?;
        groups.extend(listed.iter().map(|group| group.gid()));
        groups.sort_unstable();
        groups.dedup();
        Some(Account {
            uid: user.uid(),
            groups,
        })
    }
}

impl SystemAccounts {
    /// The user of this id with all groups. A user who is not listed, or whose groups cannot be listed, has none: an
    /// unknown group gives no rights.
    pub fn account_of_id(&self, uid: u32) -> Account {
        let known = get_user_by_uid(uid).and_then(|user| self.account(user.name().to_str()?));
        known
            .filter(|account| account.uid == uid)
            .unwrap_or(Account {
                uid,
                groups: Vec::new(),
            })
    }
}

impl Accounts for SystemAccounts {
    fn user_id(&self, name: &str) -> Option<u32> {
        get_user_by_name(name).map(|user| user.uid())
    }

    fn group_id(&self, name: &str) -> Option<u32> {
        get_group_by_name(name).map(|group| group.gid())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_machine_knows_root() {
        assert_eq!(SystemAccounts.user_id("root"), Some(0));
        assert_eq!(SystemAccounts.group_id("root"), Some(0));
        let root = SystemAccounts.account("root").unwrap();
        assert!(root.is_root() && root.groups.contains(&0), "{root:?}");
    }

    #[test]
    fn names_that_nobody_has_are_not_found() {
        for name in ["", "no such user", "a\0b"] {
            assert_eq!(SystemAccounts.user_id(name), None);
            assert_eq!(SystemAccounts.group_id(name), None);
            assert_eq!(SystemAccounts.account(name), None);
        }
    }
}
