import time

from tqdm import tqdm

with tqdm(total=500_000_000, unit="B", unit_scale=True, unit_divisor=1024, desc="model", mininterval=0.4) as bar:
    for part in range(100):
        time.sleep(0.04)
        bar.update(5_000_000)
