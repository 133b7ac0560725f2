"""codecarbon, unchanged: its tracker finds the simulated GPUs and counts their energy."""
import logging, tempfile, time

from codecarbon import OfflineEmissionsTracker

logging.getLogger("codecarbon").setLevel(logging.ERROR)
with tempfile.TemporaryDirectory() as folder:
    tracker = OfflineEmissionsTracker(country_iso_code="CHE", measure_power_secs=1, output_dir=folder, save_to_file=False)
    tracker.start()
    time.sleep(3)
    tracker.stop()
    data = tracker.final_emissions_data
joules = data.gpu_energy * 3.6e6
assert data.gpu_count == 2 and "V100" in data.gpu_model, (data.gpu_count, data.gpu_model)
assert 0.6 * 80 * 3 < joules < 1.6 * 80 * 3, joules
print("OK")
