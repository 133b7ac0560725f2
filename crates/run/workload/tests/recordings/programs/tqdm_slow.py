import time

from tqdm import tqdm

bar = tqdm(range(6), unit="batch")
for batch in bar:
    time.sleep(1.3)
    bar.set_postfix(loss=2.5 / (batch + 1))
