"""Prints lines in the exact form of programs that cannot be run here; each function names the source of the form."""

import sys
import time
from datetime import datetime


def megatron():
    """megatron/training/training.py of NVIDIA/Megatron-LM d98e8a64, function training_log."""
    for iteration in range(10, 101, 10):
        time.sleep(0.4)
        line = f" [{datetime.now().strftime('%Y-%m-%d %H:%M:%S.%f')}]"
        line += " iteration {:8d}/{:8d} |".format(iteration, 500000)
        line += " consumed samples: {:12d} |".format(iteration * 256)
        line += " elapsed time per iteration (ms): {:.1f} |".format(40.0)
        line += " throughput per GPU (TFLOP/s/GPU): 412.3 | learning rate: 1.500000E-04 | global batch size:   256 |"
        line += " lm loss: {:.6E} | loss scale: 1.0 | grad norm: 1.234 |".format(10 - iteration / 100)
        line += " number of skipped iterations:   0 | number of nan iterations:   0 |"
        print(line)


def darknet():
    """examples/detector.c of pjreddie/darknet f6afaabc."""
    for batch in range(1, 11):
        print("Loaded: 0.000042 seconds")
        print("Region 82 Avg IOU: 0.123456, Class: 0.5, Obj: 0.4, No Obj: 0.5, .5R: 0.0, .75R: 0.0,  count: 4")
        time.sleep(0.4)
        print("%d: %f, %f avg, %f rate, %f seconds, %d images" % (batch, 900 - batch, 900.5, 0.0001, 0.4, batch * 64))


def mnist():
    """mnist/main.py of pytorch/examples 77f55b91; 60000 images in batches of 64, a line every 100 batches."""
    for epoch in (1, 2):
        for batch in range(0, 938, 100):
            time.sleep(0.25)
            done, loss = batch * 64, 2.3 - batch / 1000
            print("Train Epoch: {} [{}/{} ({:.0f}%)]\tLoss: {:.6f}".format(epoch, done, 60000, 100.0 * batch / 938, loss))
        print("\nTest set: Average loss: {:.4f}, Accuracy: {}/{} ({:.0f}%)\n".format(0.05, 9823, 10000, 98.23))


def cifar():
    """The tutorial "Training a Classifier" of PyTorch."""
    for epoch in range(2):
        for batch in range(12000):
            if batch % 2000 == 1999:
                time.sleep(0.4)
                print(f"[{epoch + 1}, {batch + 1:5d}] loss: {2.2 - batch / 12000:.3f}")
    print("Finished Training")


def steps():
    """No program in particular."""
    for step in range(100, 1300, 100):
        time.sleep(0.3)
        print(f"step {step}")


def benchmark():
    """scripts/tf_cnn_benchmarks/benchmark_cnn.py of tensorflow/benchmarks."""
    print("Step\tImg/sec\ttotal_loss")
    for step in [1, *range(10, 101, 10)]:
        time.sleep(0.3)
        print("%i\timages/sec: %.1f +/- %.1f (jitter = %.1f)\t%.3f" % (step, 212.5, 0.4, 1.2, 7.89))


def rates():
    """No program in particular."""
    for line in range(10):
        time.sleep(0.5)
        print(f"throughput {210 + line % 3:.1f} images/sec")


def json_lines():
    """No program in particular."""
    for step in range(50, 601, 50):
        time.sleep(0.3)
        print('{"time": "2026-11-16T09:22:09Z", "step": %d, "loss": %.4f, "lr": 0.0001}' % (step, 3 - step / 600))


globals()[sys.argv[1]]()
