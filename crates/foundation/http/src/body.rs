//! The body of an answer, of known length, in chunks, or until the connection closes.

/// How the length of a body is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Length {
    /// The body has this many more bytes.
    Known(u64),
    /// The body is a sequence of chunks.
    Chunked(Chunk),
    /// The body ends with the connection.
    UntilClosed,
}

/// Where in a sequence of chunks the next byte is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Chunk {
    /// In the line with the size of the next chunk; the number of bytes read of it, and the size so far.
    Size {
        bytes: u32,
        size: u64,
        is_extension: bool,
    },
    /// In a chunk with this many more bytes.
    Data(u64),
    /// In the line end after a chunk.
    LineEnd,
    /// After the last chunk.
    End,
}

impl Chunk {
    /// The start of the first chunk.
    pub const START: Self = Self::Size {
        bytes: 0,
        size: 0,
        is_extension: false,
    };
}

/// The longest line with the size of a chunk, in bytes.
const MAX_SIZE_LINE: u32 = 256;

/// The error of a body that is not written as its header says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct InvalidChunk;

impl Length {
    /// Whether the whole body was read.
    pub fn is_done(&self) -> bool {
        matches!(self, Self::Known(0) | Self::Chunked(Chunk::End))
    }

    /// Whether the body is whole if the connection closes now.
    pub fn may_close(&self) -> bool {
        self.is_done() || matches!(self, Self::UntilClosed)
    }

    /// Appends the content of the next bytes to `content`.
    pub fn take(&mut self, bytes: &[u8], content: &mut Vec<u8>) -> Result<(), InvalidChunk> {
        match self {
            Self::UntilClosed => content.extend_from_slice(bytes),
            Self::Known(left) => {
                let count = bytes
                    .len()
                    .min(usize::try_from(*left).unwrap_or(usize::MAX));
                content.extend_from_slice(&bytes[..count]);
                *left -= count as u64;
            }
            Self::Chunked(chunk) => return take_chunks(chunk, bytes, content),
        }
        Ok(())
    }
}

/// Appends the content of chunks to `content`.
fn take_chunks(
    chunk: &mut Chunk,
    mut bytes: &[u8],
    content: &mut Vec<u8>,
) -> Result<(), InvalidChunk> {
    while let Some((first, rest)) = bytes.split_first() {
        match chunk {
            Chunk::End => return Ok(()),
            Chunk::Data(left) => {
                let count = bytes
                    .len()
                    .min(usize::try_from(*left).unwrap_or(usize::MAX));
                content.extend_from_slice(&bytes[..count]);
                *left -= count as u64;
                bytes = &bytes[count..];
                if *left == 0 {
                    *chunk = Chunk::LineEnd;
                }
                continue;
            }
            Chunk::LineEnd => match first {
                b'\r' => {}
                b'\n' => *chunk = Chunk::START,
                _ => return Err(InvalidChunk),
            },
            Chunk::Size { .. } => *chunk = after_size_byte(*chunk, *first)?,
        }
        bytes = rest;
    }
    Ok(())
}

/// The place after one byte of the line with a chunk's size.
fn after_size_byte(chunk: Chunk, byte: u8) -> Result<Chunk, InvalidChunk> {
    let Chunk::Size {
        bytes,
        size,
        is_extension,
    } = chunk
    else {
        return Ok(chunk);
    };
    if bytes >= MAX_SIZE_LINE {
        return Err(InvalidChunk);
    }
    let next = |size, is_extension| Chunk::Size {
        bytes: bytes + 1,
        size,
        is_extension,
    };
    Ok(match (byte, char::from(byte).to_digit(16)) {
        (b'\n', _) if bytes == 0 => return Err(InvalidChunk),
        (b'\n', _) if size == 0 => Chunk::End,
        (b'\n', _) => Chunk::Data(size),
        (b'\r', _) => next(size, true),
        (_, Some(digit)) if !is_extension => {
            let size = size.checked_mul(16).ok_or(InvalidChunk)?;
            next(size + u64::from(digit), false)
        }
        (b';' | b' ' | b'\t', _) => next(size, true),
        _ if is_extension => next(size, true),
        _ => return Err(InvalidChunk),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(parts: &[&[u8]]) -> Result<(Vec<u8>, bool), InvalidChunk> {
        let mut length = Length::Chunked(Chunk::START);
        let mut content = Vec::new();
        for part in parts {
            length.take(part, &mut content)?;
        }
        Ok((content, length.is_done()))
    }

    #[test]
    fn chunks_are_joined() {
        let text = b"4\r\nabcd\r\nA;x=1\r\n0123456789\r\n0\r\n\r\n";
        assert_eq!(read(&[text]), Ok((b"abcd0123456789".to_vec(), true)));
        assert_eq!(read(&[b"4\r\nab"]), Ok((b"ab".to_vec(), false)));
        assert!(read(&[b"zz\r\n"]).is_err());
        assert!(read(&[b"fffffffffffffffff\r\n"]).is_err());
        assert!(read(&[&[b' '; 300]]).is_err());
    }

    proptest! {
        /// It does not matter where the network divides the bytes, and no bytes cause a panic.
        #[test]
        fn divisions_do_not_matter(text in prop::collection::vec(prop::sample::select(b"0123aF;\r\nx".to_vec()), 0..80), at in 0usize..80) {
            let at = at.min(text.len());
            prop_assert_eq!(read(&[&text]), read(&[&text[..at], &text[at..]]));
        }
    }
}
