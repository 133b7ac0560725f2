//! Test files, and ONNX files written byte by byte.
#![allow(dead_code)]

use std::path::{Path, PathBuf};

use sweetspot_network::{
    Convention, Cost, Network, NetworkError, OnnxOptions, Precision, read_onnx,
};

pub fn onnx_path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/onnx")
        .join(format!("{name}.onnx"))
}

pub fn onnx(name: &str) -> Network {
    let path = onnx_path(name);
    read_onnx(path.to_str().unwrap(), &OnnxOptions::default()).unwrap()
}

/// Reads bytes as an ONNX file.
pub fn read(bytes: &[u8]) -> Result<Network, NetworkError> {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), bytes).unwrap();
    read_onnx(file.path().to_str().unwrap(), &OnnxOptions::default())
}

pub fn macs(network: &Network) -> u128 {
    let batch = network.batch;
    let cost = Cost::of(network, Convention::Usual, Precision::Fp32, batch, false);
    cost.total().operations.macs
}

/// A message of protocol buffers.
#[derive(Clone, Default)]
pub struct Message(pub Vec<u8>);

impl Message {
    pub fn varint(mut self, mut number: u64) -> Self {
        while number >= 0x80 {
            self.0.push(number as u8 | 0x80);
            number >>= 7;
        }
        self.0.push(number as u8);
        self
    }

    pub fn int(self, field: u64, number: i64) -> Self {
        self.varint(field << 3).varint(number as u64)
    }

    pub fn bytes(self, field: u64, bytes: &[u8]) -> Self {
        let mut message = self.varint(field << 3 | 2).varint(bytes.len() as u64);
        message.0.extend(bytes);
        message
    }

    pub fn text(self, field: u64, text: &str) -> Self {
        self.bytes(field, text.as_bytes())
    }

    pub fn message(self, field: u64, message: Message) -> Self {
        self.bytes(field, &message.0)
    }
}

pub fn node(operator: &str, inputs: &[&str], outputs: &[&str]) -> Message {
    let mut message = Message::default();
    for input in inputs {
        message = message.text(1, input);
    }
    for output in outputs {
        message = message.text(2, output);
    }
    let name = format!("the_{}", outputs.first().unwrap_or(&"none"));
    message.text(3, &name).text(4, operator)
}

pub fn ints(name: &str, numbers: &[i64]) -> Message {
    let mut message = Message::default().text(1, name);
    for number in numbers {
        message = message.int(8, *number);
    }
    message
}

pub fn info(name: &str, sizes: &[i64]) -> Message {
    let mut shape = Message::default();
    for size in sizes {
        shape = shape.message(1, Message::default().int(1, *size));
    }
    let tensor = Message::default().int(1, 1).message(2, shape);
    let kind = Message::default().message(1, tensor);
    Message::default().text(1, name).message(2, kind)
}

/// A model of these nodes with these inputs.
pub fn model(nodes: Vec<Message>, inputs: Vec<Message>) -> Vec<u8> {
    let mut graph = Message::default();
    for node in nodes {
        graph = graph.message(1, node);
    }
    for input in inputs {
        graph = graph.message(11, input);
    }
    let opset = Message::default().int(2, 17);
    Message::default().message(7, graph).message(8, opset).0
}
