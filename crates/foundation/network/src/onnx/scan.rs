//! A first pass over the bytes of a file before decoding: it checks that the file is complete, is not nested
//! too deep and has no more fields than fit in memory: two bytes of a file can decode to a node of 200 bytes.

/// The maximum number of decoded fields in a file; a network of a thousand layers has about twenty thousand.
pub const MAX_FIELDS: u64 = 2_000_000;
/// The maximum depth of nested protobuf messages.
const MAX_DEPTH: usize = 24;

/// The kinds of protobuf messages that are decoded.
#[derive(Clone, Copy)]
enum Message {
    Model,
    Graph,
    Node,
    Attribute,
    Tensor,
    ValueInfo,
    Type,
    TensorType,
    Sizes,
    Leaf,
}

impl Message {
    /// The kind of the message in a field; `None` if the field does not contain a decoded message.
    fn child_kind(self, field: u64) -> Option<Self> {
        match (self, field) {
            (Self::Model, 7) => Some(Self::Graph),
            (Self::Model, 8) => Some(Self::Leaf),
            (Self::Graph, 1) => Some(Self::Node),
            (Self::Graph, 5) | (Self::Attribute, 5) => Some(Self::Tensor),
            (Self::Graph, 11..=13) => Some(Self::ValueInfo),
            (Self::Node, 5) => Some(Self::Attribute),
            (Self::ValueInfo, 2) => Some(Self::Type),
            (Self::Type, 1) => Some(Self::TensorType),
            (Self::TensorType, 2) => Some(Self::Sizes),
            (Self::Sizes, 1) => Some(Self::Leaf),
            _ => None,
        }
    }

    /// Whether a field contains packed numbers, which take more memory after decoding.
    fn unpacks(self, field: u64) -> bool {
        matches!((self, field), (Self::Tensor, 1) | (Self::Attribute, 7 | 8))
    }
}

/// Checks that the bytes are a complete file whose decoded form fits into memory.
pub fn scan(bytes: &[u8]) -> Result<(), String> {
    let mut fields = 0;
    scan_message(bytes, Message::Model, 0, &mut fields)
}

/// Checks a message and the messages inside it, and counts their fields.
fn scan_message(
    mut rest: &[u8],
    message: Message,
    depth: usize,
    fields: &mut u64,
) -> Result<(), String> {
    if depth > MAX_DEPTH {
        return Err("it is nested too deep to be an ONNX model".to_owned());
    }
    while !rest.is_empty() {
        *fields += 1;
        let tag = varint(&mut rest)?;
        let field = tag >> 3;
        match tag & 7 {
            0 => {
                varint(&mut rest)?;
            }
            1 => skip(&mut rest, 8)?,
            5 => skip(&mut rest, 4)?,
            2 => {
                let length = varint(&mut rest)?;
                let length = usize::try_from(length).map_err(|_| truncated())?;
                let inside = rest.get(..length).ok_or_else(truncated)?;
                rest = &rest[length..];
                if message.unpacks(field) {
                    *fields += length as u64;
                } else if let Some(inner) = message.child_kind(field) {
                    scan_message(inside, inner, depth + 1, fields)?;
                }
            }
            _ => return Err("it is damaged, or not an ONNX model".to_owned()),
        }
        if *fields > MAX_FIELDS {
            return Err(format!(
                "it is too large: it has more than {MAX_FIELDS} nodes, sizes and names"
            ));
        }
    }
    Ok(())
}

fn truncated() -> String {
    "it is cut off or damaged: a field is longer than the part of the file that contains it"
        .to_owned()
}

/// Skips the next `length` bytes.
fn skip(rest: &mut &[u8], length: usize) -> Result<(), String> {
    *rest = rest.get(length..).ok_or_else(truncated)?;
    Ok(())
}

/// Reads a protobuf varint: groups of seven bits, the lowest first.
pub fn varint(rest: &mut &[u8]) -> Result<u64, String> {
    let mut number = 0u64;
    for (index, byte) in rest.iter().enumerate().take(10) {
        number |= u64::from(byte & 0x7f) << (7 * index).min(63);
        if byte & 0x80 == 0 {
            *rest = &rest[index + 1..];
            return Ok(number);
        }
    }
    Err(truncated())
}
