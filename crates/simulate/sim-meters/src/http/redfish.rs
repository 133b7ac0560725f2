//! A board controller (BMC) with Redfish, in the new and in the old schema of power readings.

use serde_json::{Value, json};
use sweetspot_device::Moment;
use sweetspot_quantity::Seconds;

use super::{HttpMeter, Page, Request, Sampling, round};
use crate::{MeterKind, NodeEnergy};

/// The old schema shows the mean of a minute; a new sample comes each second (assumed).
const OLD: Sampling = Sampling {
    period: Seconds::new(1.0),
    average: Seconds::new(60.0),
    delay: Seconds::new(1.0),
};
/// The new schema shows the mean of five seconds (assumed).
const NEW: Sampling = Sampling {
    period: Seconds::new(5.0),
    average: Seconds::new(5.0),
    delay: Seconds::new(1.0),
};
/// The path of the chassis.
const CHASSIS: &str = "/redfish/v1/Chassis/1";

/// A Redfish error message.
pub(super) fn error(id: &str, message: &str) -> Value {
    json!({"error": {"code": id, "message": message, "@Message.ExtendedInfo": [{"MessageId": id, "Message": message, "Severity": "Critical"}]}})
}

impl HttpMeter {
    /// Answers a request to the board controller.
    pub(super) fn redfish(
        &self,
        request: &Request<'_>,
        now: Moment,
        node: &dyn NodeEnergy,
    ) -> Page {
        let is_old = self.kind == MeterKind::RedfishOld;
        let link = |path: &str| json!({"@odata.id": path});
        let path = request.path();
        let page = match path.strip_suffix('/').unwrap_or(path) {
            "/redfish" => json!({"v1": "/redfish/v1/"}),
            "/redfish/v1" => json!({
                "@odata.type": "#ServiceRoot.v1_9_0.ServiceRoot",
                "@odata.id": "/redfish/v1/",
                "Id": "RootService",
                "Name": "Root Service",
                "RedfishVersion": if is_old { "1.4.0" } else { "1.15.0" },
                "Chassis": link("/redfish/v1/Chassis"),
            }),
            "/redfish/v1/Chassis" => json!({
                "@odata.type": "#ChassisCollection.ChassisCollection",
                "@odata.id": "/redfish/v1/Chassis",
                "Name": "Chassis Collection",
                "Members@odata.count": 1,
                "Members": [link(CHASSIS)],
            }),
            CHASSIS => self.chassis(is_old),
            "/redfish/v1/Chassis/1/Power" => self.old_power(now, node),
            "/redfish/v1/Chassis/1/EnvironmentMetrics" if !is_old => {
                self.environment_metrics(now, node)
            }
            other => {
                let message = format!("The resource at the URI {other} was not found.");
                return (404, error("Base.1.8.ResourceMissingAtURI", &message));
            }
        };
        (200, page)
    }

    /// The description of the chassis, with links to its power readings.
    fn chassis(&self, is_old: bool) -> Value {
        let mut page = json!({
            "@odata.type": "#Chassis.v1_14_0.Chassis",
            "@odata.id": CHASSIS,
            "Id": "1",
            "Name": "Computer System Chassis",
            "ChassisType": "RackMount",
            "Manufacturer": "Simulated",
            "Model": self.faults.model().unwrap_or("Simulated server"),
            "SerialNumber": self.mac(),
            "PowerState": "On",
            "Power": {"@odata.id": format!("{CHASSIS}/Power")},
        });
        if !is_old {
            page["EnvironmentMetrics"] =
                json!({"@odata.id": format!("{CHASSIS}/EnvironmentMetrics")});
        }
        page
    }

    /// The power in the new schema: watts with one place, kWh with three.
    fn environment_metrics(&self, now: Moment, node: &dyn NodeEnergy) -> Value {
        let shown = self.shown(&NEW, now, node);
        json!({
            "@odata.type": "#EnvironmentMetrics.v1_3_0.EnvironmentMetrics",
            "@odata.id": format!("{CHASSIS}/EnvironmentMetrics"),
            "Id": "EnvironmentMetrics",
            "Name": "Chassis Environment Metrics",
            "PowerWatts": {
                "DataSourceUri": format!("{CHASSIS}/Sensors/TotalPower"),
                "Reading": round(shown.power.get(), 1),
            },
            "EnergykWh": {
                "DataSourceUri": format!("{CHASSIS}/Sensors/TotalEnergy"),
                "Reading": round(shown.total.get() / 3.6e6, 3),
            },
        })
    }

    /// The power in the old schema: whole watts.
    fn old_power(&self, now: Moment, node: &dyn NodeEnergy) -> Value {
        let watts = self.shown(&OLD, now, node).power.get().round() as u64;
        json!({
            "@odata.type": "#Power.v1_5_0.Power",
            "@odata.id": format!("{CHASSIS}/Power"),
            "Id": "Power",
            "Name": "Power",
            "PowerControl": [{
                "@odata.id": format!("{CHASSIS}/Power#/PowerControl/0"),
                "MemberId": "0",
                "Name": "System Power Control",
                "PowerConsumedWatts": watts,
                "PowerMetrics": {
                    "IntervalInMin": 1,
                    "AverageConsumedWatts": watts,
                },
                "Status": {"State": "Enabled", "Health": "OK"},
            }],
        })
    }
}
