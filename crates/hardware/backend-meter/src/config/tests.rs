//! Tests of the user's `meters.toml`.

use super::*;

fn error(text: &str) -> String {
    MetersFile::parse("f", text).unwrap_err().to_string()
}

#[test]
fn meters_have_names_and_settings() {
    let text = "[wall]\nspec = \"wt310:/dev/usbtmc0\"\ninterval = \"100ms\"\n\
        [bmc]\nspec = \"redfish:https://bmc\"\nuser = \"root\"\npassword_env = \"BMC\"\ninsecure = true\n\
        [psu]\nsum = [\"wall\", \"bmc\"]\n\
        [own]\nspec = \"line:tcp://h:1\"\npattern = 'P=([0-9.]+)'\nunit = \"kW\"\naccuracy = \"0.5%\"\n";
    let file = MetersFile::parse("f", text).unwrap();
    assert_eq!(
        file.names().collect::<Vec<_>>(),
        ["bmc", "own", "psu", "wall"]
    );
    let Entry::One(_, bmc) = &file.entries["bmc"] else {
        panic!()
    };
    assert!(bmc.insecure && bmc.password_env.as_deref() == Some("BMC"));
    let Entry::One(_, own) = &file.entries["own"] else {
        panic!()
    };
    assert_eq!(own.accuracy, Some(Ratio::new(0.005)));
}

#[test]
fn mistakes_are_one_sentence_with_the_line() {
    for (text, expected) in [
        (
            "[a]\nspec = \"wt310:/dev/x\"\n[a]\nspec = \"line:/dev/y\"",
            "f, line 3: two meters have the name a: rename one of them",
        ),
        (
            "[a]\nspec = \"wt310:/dev/x\"\nspec = \"wt310:/dev/y\"",
            "f, line 3: spec is given twice: remove one of them",
        ),
        (
            "a = 1",
            "f, line 1: unknown key `a`: begin a meter with [NAME] and write its keys below",
        ),
        (
            "[a]\nspec = 1",
            "f, line 1: meter a: spec must be a text in quotes",
        ),
        (
            "\n[a]\ninterval = \"1s\"",
            "f, line 2: meter a: spec is missing: write spec = \"wt310:/dev/usbtmc0\", or sum = [\"NAME\", \"NAME\"]",
        ),
        (
            "[a]\npassword = \"x\"",
            "f, line 1: meter a: a password does not belong in this file: write password-file = \"FILE\" or password-env = \"VARIABLE\"",
        ),
        (
            "[a]\nspec = \"line:tcp://h:1\"",
            "f, line 1: meter a: pattern is missing: write pattern = 'P=([0-9.]+) W', whose group is the value in a line",
        ),
        (
            "[a]\nspec = \"wt310:/dev/x\"\ninterval = \"1ms\"",
            "f, line 1: meter a: interval must be from 10 ms to 600 s",
        ),
        (
            "[a]\nspec = \"wt310:/dev/x\"\naccuracy = \"much\"",
            "f, line 1: meter a: accuracy must be a share of the reading such as \"0.5%\", not `much`",
        ),
        (
            "[\"a:b\"]\nspec = \"wt310:/dev/x\"",
            "f, line 1: `a:b` cannot be the name of a meter: use letters, digits and -",
        ),
    ] {
        assert_eq!(error(text), expected, "{text}");
    }
    assert_eq!(error("[a").lines().count(), 1);
}

#[test]
fn passwords_come_from_a_private_file_or_the_environment() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("password");
    std::fs::write(&path, "secret\n").unwrap();
    let settings = MeterSettings {
        password_file: Some(path.clone()),
        ..MeterSettings::default()
    };
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
    assert!(settings.password().unwrap_err().contains("run chmod 600"));
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
    assert_eq!(settings.password(), Ok(Some("secret".to_owned())));
    let settings = MeterSettings {
        password_env: Some("SWEETSPOT_NO_SUCH".to_owned()),
        ..MeterSettings::default()
    };
    assert!(settings.password().unwrap_err().contains("is not set"));
}
