import time

from tqdm import tqdm

for epoch in range(2):
    for batch in tqdm(range(60), mininterval=0.4):
        time.sleep(0.05)
    for batch in tqdm(range(12), mininterval=0.4):
        time.sleep(0.05)
