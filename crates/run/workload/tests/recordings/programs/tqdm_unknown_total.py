import time

from tqdm import tqdm

for image in tqdm(iter(range(100)), desc="train", unit=" img", mininterval=0.4):
    time.sleep(0.04)
