//! The boards, clocks and networks of dvfs_2019: tables I and II.

/// A board of table I.
pub(crate) struct Board {
    pub gpu: &'static str,
    /// The core clocks at which the paper measured the board, in MHz.
    pub core: &'static [f64],
    /// The memory clocks at which the paper measured the board, in MHz.
    pub memory: &'static [f64],
    /// The board's default core clock in MHz.
    pub default: f64,
}

/// The three boards of the paper.
pub(crate) const BOARDS: [Board; 3] = [
    Board {
        gpu: "tesla_p100",
        core: &[544.0, 683.0, 810.0, 936.0, 1063.0, 1202.0, 1328.0],
        memory: &[715.0],
        default: 1328.0,
    },
    Board {
        gpu: "tesla_v100_pcie_16gb",
        core: &[510.0, 652.0, 802.0, 945.0, 1087.0, 1237.0, 1380.0],
        memory: &[877.0],
        default: 1380.0,
    },
    Board {
        gpu: "gtx_2080ti",
        core: &[950.0, 1150.0, 1350.0, 1550.0, 1750.0, 1950.0],
        memory: &[5800.0, 6300.0, 6800.0, 7300.0],
        default: 1350.0,
    },
];

/// The board whose core clocks can be raised above the default.
pub(crate) const TURING: &str = "gtx_2080ti";
/// The board for which the text describes AlexNet with batches of 1024 in detail.
pub(crate) const VOLTA: &str = "tesla_v100_pcie_16gb";
/// 1.5 times the default clock of the 2080 Ti, in MHz.
pub(crate) const RAISED_CLOCK_MHZ: f64 = 2025.0;

/// The networks of table II and their batch sizes.
pub(crate) const NETWORKS: [(&str, &[u64]); 4] = [
    ("alexnet", &[128, 256, 512, 1024]),
    ("vgg16", &[16, 32, 64]),
    ("googlenet", &[16, 32, 64, 128]),
    ("resnet50", &[8, 16, 32]),
];

/// The convolution algorithms with which the paper measured training.
pub(crate) const ALGORITHMS: [&str; 3] = ["gemm", "fft", "winograd"];

/// The number of runs of each configuration. The paper takes the mean of 120 repeats and does not say in how many runs.
pub(crate) const RUNS: u32 = 5;
