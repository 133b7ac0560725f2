import time

from tqdm import tqdm, trange

for epoch in trange(3, desc="epochs", mininterval=0.3):
    for batch in tqdm(range(40), desc=f"epoch {epoch}", leave=False, mininterval=0.3):
        time.sleep(0.03)
    for batch in tqdm(range(10), desc="val", leave=False, mininterval=0.3):
        time.sleep(0.03)
