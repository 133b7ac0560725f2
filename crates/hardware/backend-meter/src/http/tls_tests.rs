//! Certificates that are refused, of a server that `openssl` runs: each with its own advice.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use super::*;
use crate::spec::HttpKind;

/// What the certificate of a server says.
struct Issued {
    name: &'static str,
    begins: &'static str,
    ends: &'static str,
    is_authority: bool,
}

const GOOD: Issued = Issued {
    name: "IP:127.0.0.1",
    begins: "20200101000000Z",
    ends: "20991231000000Z",
    is_authority: false,
};

/// A server with a certificate, ended with the test.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn openssl(folder: &Path, arguments: &[&str]) {
    let output = Command::new("openssl")
        .args(arguments)
        .current_dir(folder)
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
}

/// Makes a certificate that signs itself, `bmc.pem`, and starts a server with it. Returns its address.
fn serve(folder: &Path, issued: &Issued) -> (Server, String) {
    let authority = if issued.is_authority { "TRUE" } else { "FALSE" };
    let settings = format!(
        "[ca]\ndefault_ca=a\n[a]\ndatabase=index.txt\nnew_certs_dir=.\nrand_serial=yes\ndefault_md=sha256\npolicy=p\nx509_extensions=e\n[p]\nCN=supplied\n[e]\nbasicConstraints=critical,CA:{authority}\nsubjectAltName={}\n",
        issued.name
    );
    std::fs::write(folder.join("ca.cnf"), settings).unwrap();
    std::fs::write(folder.join("index.txt"), "").unwrap();
    let curve = "ec_paramgen_curve:prime256v1";
    openssl(
        folder,
        &[
            "req",
            "-new",
            "-newkey",
            "ec",
            "-pkeyopt",
            curve,
            "-nodes",
            "-keyout",
            "key.pem",
            "-out",
            "request.pem",
            "-subj",
            "/CN=bmc",
        ],
    );
    openssl(
        folder,
        &[
            "ca",
            "-batch",
            "-notext",
            "-selfsign",
            "-config",
            "ca.cnf",
            "-keyfile",
            "key.pem",
            "-in",
            "request.pem",
            "-out",
            "bmc.pem",
            "-startdate",
            issued.begins,
            "-enddate",
            issued.ends,
        ],
    );
    // The controller's pages are files of the folder.
    let chassis = folder.join("redfish/v1/Chassis/1");
    std::fs::create_dir_all(&chassis).unwrap();
    let body = r#"{"PowerControl":[{"PowerConsumedWatts":412}]}"#;
    let page = format!(
        "HTTP/1.0 200 OK\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    std::fs::write(chassis.join("Power"), page).unwrap();
    let missing = "HTTP/1.0 404 X\r\nContent-Length: 0\r\n\r\n";
    std::fs::write(chassis.join("EnvironmentMetrics"), missing).unwrap();
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = free.local_addr().unwrap().port();
    drop(free);
    let child = Command::new("openssl")
        .args([
            "s_server", "-HTTP", "-quiet", "-cert", "bmc.pem", "-key", "key.pem",
        ])
        .args(["-accept", &format!("127.0.0.1:{port}")])
        .current_dir(folder)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let server = Server(child);
    for _ in 0..200 {
        if std::net::TcpStream::connect(("127.0.0.1", port)).is_ok() {
            break;
        }
        std::thread::sleep(Duration::from_millis(25));
    }
    (
        server,
        format!("https://127.0.0.1:{port}/redfish/v1/Chassis/1"),
    )
}

/// Reads a controller whose certificate is known to the user, or is not.
fn read(issued: &Issued, is_known: bool) -> Result<f64, String> {
    let folder = tempfile::tempdir().unwrap();
    let (_server, url) = serve(folder.path(), issued);
    let settings = MeterSettings {
        ca_file: is_known.then(|| folder.path().join("bmc.pem")),
        ..MeterSettings::default()
    };
    let text = |problem: Problem| problem.text().to_owned();
    let (mut meter, _) =
        HttpMeter::connect(HttpKind::Redfish, &url, &settings, Seconds::new(1.0)).map_err(text)?;
    let reading = meter.read(&sweetspot_device::VirtualClock::default());
    Ok(reading.map_err(text)?.power.unwrap().get())
}

#[test]
#[ignore = "needs openssl"]
fn each_fault_of_a_certificate_has_its_own_advice() {
    assert_eq!(read(&GOOD, true), Ok(412.0));
    let unknown = read(&GOOD, false).unwrap_err();
    assert!(
        unknown.contains("not signed by a known authority"),
        "{unknown}"
    );
    assert!(unknown.contains("write ca-file"), "{unknown}");
    let renamed = Issued {
        name: "DNS:bmc.example.org",
        ..GOOD
    };
    let renamed = read(&renamed, true).unwrap_err();
    assert!(
        renamed.starts_with("its certificate has another name"),
        "{renamed}"
    );
    assert!(
        renamed.contains("bmc.example.org") && !renamed.contains("ca-file"),
        "{renamed}"
    );
    let expired = Issued {
        ends: "20210101000000Z",
        ..GOOD
    };
    let expired = read(&expired, true).unwrap_err();
    assert!(
        expired.starts_with("its certificate has expired"),
        "{expired}"
    );
    assert!(
        expired.contains("clock") && !expired.contains("ca-file"),
        "{expired}"
    );
    let early = Issued {
        begins: "20980101000000Z",
        ..GOOD
    };
    let early = read(&early, true).unwrap_err();
    assert!(
        early.starts_with("its certificate is not valid yet"),
        "{early}"
    );
    let authority = Issued {
        is_authority: true,
        ..GOOD
    };
    let authority = read(&authority, true).unwrap_err();
    assert!(
        authority.contains("is that of an authority (CA:TRUE)"),
        "{authority}"
    );
}
