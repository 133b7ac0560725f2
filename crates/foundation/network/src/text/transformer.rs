//! The operations of transformers: tokens, learned tables and attention.

use super::arguments::Arguments;
use super::layers::ParsedLayer;
use crate::{Arithmetic, Kind, Shape};

/// The number of tensors that attention combines: queries, keys and values.
const ATTENTION_INPUTS: u64 = 3;

/// Parses an operation of transformers on an input of this shape; `None` if `word` is none.
pub fn transformer_layer(
    word: &str,
    arguments: &mut Arguments<'_>,
    input: &Shape,
) -> Option<Result<ParsedLayer, String>> {
    Some(match word {
        "embedding" => embedding(arguments, input),
        "tokens" => tokens(input),
        "token" => token(input),
        "pick" => pick(input),
        "positions" => positions(arguments, input),
        "segments" => segments(arguments, input),
        "separate" => separate(arguments, input),
        _ => return None,
    })
}

/// The batch size, length and width of a sequence of tokens.
fn sequence(word: &str, input: &Shape) -> Result<[u64; 3], String> {
    <[u64; 3]>::try_from(input.sizes())
        .map_err(|_| format!("`{word}` needs a sequence of tokens as its input; this is {input}"))
}

/// Parses an embedding, which looks up rows of a table.
fn embedding(arguments: &mut Arguments<'_>, input: &Shape) -> Result<ParsedLayer, String> {
    let rows = arguments.number("the number of rows of its table")?;
    let width = arguments.number("the length of a row")?;
    let mut sizes = input.sizes().to_vec();
    sizes.push(width);
    let parameters = Shape::new(vec![rows, width])?.elements();
    Ok(ParsedLayer::new(
        Kind::Embedding,
        Shape::new(sizes)?,
        parameters,
    ))
}

/// Turns the positions of an image into a sequence of tokens.
fn tokens(input: &Shape) -> Result<ParsedLayer, String> {
    match input.sizes() {
        [batch, channels, space @ ..] => {
            ParsedLayer::view(vec![*batch, space.iter().product(), *channels])
        }
        _ => Err("`tokens` needs an input with channels and spatial dimensions".to_owned()),
    }
}

/// Puts a learned token before a sequence, as vision transformers do for the class.
fn token(input: &Shape) -> Result<ParsedLayer, String> {
    let [batch, length, width] = sequence("token", input)?;
    let output = Shape::new(vec![batch, length + 1, width])?;
    Ok(ParsedLayer::new(Kind::Concat, output, width))
}

/// Takes one token of a sequence.
fn pick(input: &Shape) -> Result<ParsedLayer, String> {
    let [batch, _, width] = sequence("pick", input)?;
    ParsedLayer::view(vec![batch, width])
}

/// Adds a learned vector to each position. The table has as many rows as given, or as the sequence has positions.
fn positions(arguments: &mut Arguments<'_>, input: &Shape) -> Result<ParsedLayer, String> {
    let [_, length, _] = sequence("positions", input)?;
    let rows = match arguments.has_next() {
        true => arguments.number("the number of rows of its table")?,
        false => length,
    };
    match length <= rows {
        true => add_rows(rows, input),
        false => Err(format!(
            "`positions` has a table for {rows} positions, and the sequence has {length}"
        )),
    }
}

/// Adds to each token the learned vector of its segment.
fn segments(arguments: &mut Arguments<'_>, input: &Shape) -> Result<ParsedLayer, String> {
    let rows = arguments.number("the number of segments")?;
    sequence("segments", input)?;
    add_rows(rows, input)
}

/// Adds rows of a table to the tokens of a sequence. One row is read for each token, whatever the size of the table.
fn add_rows(rows: u64, input: &Shape) -> Result<ParsedLayer, String> {
    let width = input.sizes().last().copied().unwrap_or(1);
    let batch = input.sizes().first().copied().unwrap_or(1).max(1);
    let parameters = Shape::new(vec![rows, width])?.elements();
    let kind = Kind::ElementWise(Arithmetic::Add);
    let layer = ParsedLayer::new(kind, input.clone(), parameters);
    Ok(ParsedLayer {
        weights: input.elements() / batch,
        ..layer
    })
}

/// Copies queries, keys and values that are side by side into three tensors, each ordered by heads.
fn separate(arguments: &mut Arguments<'_>, input: &Shape) -> Result<ParsedLayer, String> {
    let heads = arguments.number_option("heads", 1)?;
    let [batch, length, width] = sequence("separate", input)?;
    let size =
        head_size(width, ATTENTION_INPUTS * heads).ok_or_else(|| not_divisible(heads, input))?;
    let output = vec![ATTENTION_INPUTS, batch, heads, length, size];
    Ok(ParsedLayer::new(Kind::Move, Shape::new(output)?, 0))
}

/// Attention without its projections, which are separate layers in the text, so that it has no weights. Its input is
/// queries, keys and values side by side, or copied apart by `separate`, or three tensors.
pub fn attention(arguments: &mut Arguments<'_>, inputs: &[Shape]) -> Result<(Kind, Shape), String> {
    let heads = arguments.option("heads");
    let heads = heads.map(super::arguments::number).transpose()?;
    let (heads, batch, sizes, positions) = match inputs {
        [input] => match (input.sizes(), heads) {
            ([ATTENTION_INPUTS, batch, heads, length, size], None) => {
                (*heads, *batch, (*size, *size), (*length, *length))
            }
            ([batch, length, width], heads) => {
                let heads = heads.unwrap_or(1);
                let size = head_size(*width, ATTENTION_INPUTS.saturating_mul(heads))
                    .ok_or_else(|| not_divisible(heads, input))?;
                (heads, *batch, (size, size), (*length, *length))
            }
            _ => return Err(not_divisible(heads.unwrap_or(1), input)),
        },
        [queries, keys, values] => {
            let heads = heads.unwrap_or(1);
            let wrong = || {
                format!(
                    "{queries}, {keys} and {values} are not queries, keys and values of {heads} heads"
                )
            };
            match (queries.sizes(), keys.sizes(), values.sizes()) {
                (
                    [batch, asking, width],
                    [_, asked, key_width],
                    [_, value_positions, value_width],
                ) if width == key_width && asked == value_positions => {
                    let query = head_size(*width, heads).ok_or_else(wrong)?;
                    let value = head_size(*value_width, heads).ok_or_else(wrong)?;
                    (heads, *batch, (query, value), (*asking, *asked))
                }
                _ => return Err(wrong()),
            }
        }
        _ => {
            return Err(format!(
                "`attention` needs queries, keys and values, one or three tensors; these are {}",
                inputs.len()
            ));
        }
    };
    let kind = Kind::Attention {
        heads,
        sizes,
        positions,
    };
    let output = Shape::new(vec![batch, positions.0, heads * sizes.1])?;
    Ok((kind, output))
}

/// The number of elements of a vector in each of several equal parts; `None` if they cannot be equal.
fn head_size(width: u64, parts: u64) -> Option<u64> {
    (parts > 0 && width.is_multiple_of(parts)).then(|| width / parts)
}

fn not_divisible(heads: u64, input: &Shape) -> String {
    format!(
        "attention needs queries, keys and values side by side, for {heads} heads; this is {input}"
    )
}
