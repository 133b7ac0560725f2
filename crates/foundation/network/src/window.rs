//! Sliding windows: kernel, stride, padding, dilation.

/// A sliding window, with one value per spatial axis in each field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Window {
    /// The size of the kernel on each spatial axis.
    pub kernel: Vec<u64>,
    /// The distance between two neighbouring positions of the kernel, on each axis.
    pub stride: Vec<u64>,
    /// The numbers of elements added before and after the input, on each axis.
    pub padding: Vec<(u64, u64)>,
    /// The distance between two elements of the kernel, on each axis.
    pub dilation: Vec<u64>,
    /// Whether a last position at which the kernel extends beyond the input counts (ONNX `ceil_mode`).
    pub ceil: bool,
}

impl Window {
    /// A window with stride 1 and without padding.
    pub fn plain(kernel: Vec<u64>) -> Self {
        let axes = kernel.len();
        Self {
            kernel,
            stride: vec![1; axes],
            padding: vec![(0, 0); axes],
            dilation: vec![1; axes],
            ceil: false,
        }
    }

    /// The number of elements in the kernel.
    pub fn volume(&self) -> u64 {
        self.kernel.iter().fold(1, |all, k| all.saturating_mul(*k))
    }

    /// Sets the padding so that the output size is the input size divided by the stride, rounded up. If the
    /// padding is odd, the extra element goes to the end, or with `at_start` to the beginning.
    pub fn pad_same(&mut self, input: &[u64], at_start: bool) {
        for (axis, size) in input.iter().enumerate().take(self.kernel.len()) {
            let stride = self.stride[axis].max(1);
            let out = size.div_ceil(stride);
            let reach = (out.saturating_sub(1)).saturating_mul(stride);
            let all = reach.saturating_add(self.reach(axis)).saturating_sub(*size);
            let (less, more) = (all / 2, all - all / 2);
            self.padding[axis] = if at_start { (more, less) } else { (less, more) };
        }
    }

    /// The number of elements that the dilated kernel spans.
    fn reach(&self, axis: usize) -> u64 {
        let apart = self.dilation[axis].saturating_mul(self.kernel[axis].saturating_sub(1));
        apart.saturating_add(1)
    }

    /// The sizes of the output: (in + padding - kernel) / stride + 1, rounded down.
    pub fn output(&self, input: &[u64]) -> Result<Vec<u64>, String> {
        self.check(input)?;
        let sizes = input.iter().enumerate().map(|(axis, size)| {
            let (before, after) = self.padding[axis];
            let padded = size.saturating_add(before).saturating_add(after);
            let Some(room) = padded.checked_sub(self.reach(axis)) else {
                return Err(format!(
                    "a kernel of {} elements does not fit an input of {padded} with its padding",
                    self.reach(axis)
                ));
            };
            let stride = self.stride[axis];
            let mut out = room / stride + 1;
            // A window that would begin in the padding after the input does not count.
            let begins = out.saturating_mul(stride);
            if self.ceil && room % stride != 0 && begins < size.saturating_add(before) {
                out += 1;
            }
            Ok(out)
        });
        sizes.collect()
    }

    /// The sizes of the output as multi_gpu_2018 prints them: (in - kernel + 2 P) / S, without the +1.
    pub fn output_as_printed(&self, input: &[u64]) -> Vec<u64> {
        let sizes = input.iter().enumerate().map(|(axis, size)| {
            let (before, after) = self.padding[axis];
            let padded = size.saturating_add(before).saturating_add(after);
            padded.saturating_sub(self.reach(axis)) / self.stride[axis].max(1)
        });
        sizes.collect()
    }

    /// Checks that the window has as many axes as the input, and positive sizes.
    fn check(&self, input: &[u64]) -> Result<(), String> {
        let axes = self.kernel.len();
        let parts = [self.stride.len(), self.padding.len(), self.dilation.len()];
        if axes != input.len() || parts.iter().any(|part| *part != axes) {
            return Err(format!(
                "a window of {axes} axes cannot slide over an input of {}",
                input.len()
            ));
        }
        if self.volume() > 1 << 32 {
            return Err(format!(
                "a kernel of {} elements is too large",
                self.volume()
            ));
        }
        let mut numbers = self.kernel.iter().chain(&self.stride).chain(&self.dilation);
        match numbers.any(|number| *number == 0) {
            true => Err("kernel, stride and dilation must be at least 1".to_owned()),
            false => Ok(()),
        }
    }
}
