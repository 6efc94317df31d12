//! Files that are not what they should be: an error that names the place, or changes that can be served.

use fastrand::Rng;
use namesake::answers::Options;
use namesake::feed::load;
use namesake::source::Convert;
use namesake::source::folder::read_text;

use crate::{Failures, in_two_threads, plan};

/// How many documents are read.
const DOCUMENTS: u64 = 100_000;

const YAML: &str = r#"apiVersion: multicluster.x-k8s.io/v1beta1
kind: ServiceImport
metadata: {namespace: shop, name: web, annotations: {a: "b"}}
spec:
  type: ClusterSetIP
  ips: [10.1.0.1, "2001:db8::1"]
  ports: &ports
  - {name: http, port: 80, protocol: TCP, appProtocol: http}
  - {port: 53, protocol: UDP}
status:
  clusters: [{cluster: east}, {cluster: b.a}]
---
apiVersion: v1
kind: List
items:
- apiVersion: discovery.k8s.io/v1
  kind: EndpointSlice
  metadata:
    namespace: shop
    name: db-east
    labels:
      multicluster.kubernetes.io/service-name: db
      multicluster.kubernetes.io/source-cluster: east
    annotations:
      endpoints.kubernetes.io/last-change-trigger-time: "2026-11-29T20:17:56.123Z"
  addressType: IPv4
  ports: *ports
  endpoints:
  - addresses: [10.0.0.1, 10.0.0.2]
    hostname: db-0
    conditions: {ready: true, serving: null, terminating: false}
    targetRef: {kind: Pod, name: db-0-abcde}
  - addresses: ["10.0.0.3"]
---
apiVersion: multicluster.x-k8s.io/v1alpha1
kind: ServiceImport
metadata: {namespace: shop, name: db}
spec: {type: Headless}
"#;

const JSON: &str = r#"{"apiVersion":"discovery.k8s.io/v1","kind":"EndpointSliceList","metadata":{"resourceVersion":"7"},
"items":[{"metadata":{"namespace":"shop","name":"db-v6","labels":{"multicluster.kubernetes.io/service-name":"db",
"multicluster.kubernetes.io/source-cluster":"east"}},"addressType":"IPv6","ports":[{"name":"pg","port":5432}],
"endpoints":[{"addresses":["2001:db8::5"],"hostname":"db-1","conditions":{"ready":false,"serving":true,"terminating":true}},
{"addresses":["::1"]}]}]}"#;

/// What is put where it does not belong.
const WORDS: [&str; 24] = [
    "null",
    "~",
    "[]",
    "{}",
    "-1",
    "65536",
    "1e309",
    "\"\"",
    "&a [*a]",
    "*ports",
    "!!binary x",
    "? ",
    "---\n",
    "...\n",
    "\t",
    "\u{0}",
    "\u{feff}",
    "ServiceImport",
    "EndpointSlice",
    "metadata:",
    "\"\\ud800\"",
    "{{{{{{{{",
    "[[[[[[[[",
    "<<: *ports",
];

#[test]
fn no_document_makes_the_folder_source_panic() {
    let (seed, count) = plan(DOCUMENTS);
    let list: serde_json::Value = serde_json::from_str(JSON).unwrap();
    let slice = testbed::protobuf::slice(&list["items"][0]).unwrap();
    in_two_threads(seed ^ 0xD0C5, count, move |mut rng, count| {
        let mut failures = Failures::default();
        let mut good = 0u64;
        for _ in 0..count {
            let (file, text) = if rng.u8(0..3) == 0 { ("x.json", JSON) } else { ("x.yaml", YAML) };
            let bytes = spoil(text.as_bytes(), &mut rng);
            let text = String::from_utf8_lossy(&bytes);
            failures.check(&bytes, || {
                let convert = Convert { pod_names: rng.bool(), ..Convert::default() };
                match read_text(file, &text, &convert) {
                    Ok(changes) => {
                        good += 1;
                        drop(load(Options { endpoint_pod_names: true, ..Options::default() }, changes));
                    }
                    // What a person reads names the file.
                    Err(error) if error.to_string().contains(file) => {}
                    Err(error) => return Err(format!("an error without its place: {error}")),
                }
                // What the API server sends goes the same way, but past the YAML reader.
                let _ = convert.import(&text);
                let _ = convert.slice(&text);
                Ok(())
            });
            let octets = spoil(&slice, &mut rng);
            failures.check(&octets.clone(), || {
                let octets = octets.into();
                let convert = Convert::default();
                let _ = convert.absent_in_protobuf(&octets);
                let _ = convert.slice_in_protobuf(&octets);
                Ok(())
            });
        }
        assert!(good > count / 100, "{good} of {count} were read");
        failures
    })
    .none();
}

fn spoil(text: &[u8], rng: &mut Rng) -> Vec<u8> {
    let mut bytes = text.to_vec();
    for _ in 0..rng.u8(0..5) {
        if bytes.is_empty() {
            break;
        }
        let at = rng.usize(0..bytes.len());
        let to = (at + rng.usize(1..40)).min(bytes.len());
        match rng.u8(0..8) {
            0 => bytes[at] ^= 1 << rng.u8(0..8),
            1 => bytes[at] = rng.u8(..),
            2 => drop(bytes.drain(at..to)),
            3 => bytes.truncate(at.max(40)),
            4 => {
                let part = bytes[at..to].to_vec();
                let at = rng.usize(0..=bytes.len());
                bytes.splice(at..at, part);
            }
            5 => drop(bytes.splice(at..at, WORDS[rng.usize(0..WORDS.len())].bytes())),
            // A value by another.
            6 => {
                if let Some(colon) = bytes[at..].iter().position(|b| *b == b':') {
                    let from = at + colon + 1;
                    let end = bytes[from..].iter().position(|b| b"\n,}".contains(b)).map_or(bytes.len(), |i| from + i);
                    let word = [" ", WORDS[rng.usize(0..WORDS.len())]].concat();
                    bytes.splice(from..end, word.into_bytes());
                }
            }
            // An indentation by another.
            _ => drop(bytes.splice(at..at, std::iter::repeat_n(b' ', rng.usize(1..4)))),
        }
    }
    bytes
}
