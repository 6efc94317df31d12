//! Names of a Service with an address.

use crate::asking::{Srv, nslookup, record_type};
use crate::clusterset::place::text;
use crate::clusterset::{PATIENCE, until};
use crate::objects::HELLO;
use crate::stage::{Stage, as_it_is, strings};

pub async fn c06_addresses_are_the_clusterset_ips(stage: &Stage) {
    stage.exported(as_it_is).await;
    let families = stage.families().await.len();
    for place in &stage.places {
        let addresses = until(&format!("{}: the import has addresses", place.id()), PATIENCE, async || {
            let import = place.import(HELLO).await.ok_or("there is no ServiceImport")?;
            let addresses = strings(&import["spec"]["ips"]);
            if addresses.len() != families { Err(import.to_string()) } else { Ok(addresses) }
        })
        .await;
        for address in addresses {
            let family = if address.contains(':') { "IPv6" } else { "IPv4" };
            place.until_resolves(&stage.name(), family, &[address]).await;
        }
    }
}

pub async fn c07_srv_is_one_record_for_one_port_number(stage: &Stage) {
    stage.exported(as_it_is).await;
    for place in &stage.places {
        let records = place.until_srv(&stage.name(), 1).await;
        assert_eq!(records, [Srv { port: 42, target: stage.name() }], "{}", place.id());
    }
}

pub async fn c08_cluster_local_names_local_services_only(stage: &Stage) {
    stage.exported(as_it_is).await;
    let service = stage.first().get("services", HELLO).await.unwrap();
    let address = text(&service["spec"]["clusterIP"]);
    let family = text(&service["spec"]["ipFamilies"][0]);
    let name = format!("{HELLO}.{}.svc.cluster.local", stage.first().namespace);
    stage.first().until_resolves(&name, family, &[address.to_owned()]).await;
    // The suite stops here. "Only": where there is an import and no Service, there is no such name, although its DNS
    // knows the clusterset's.
    stage.second().until_import().await;
    let ask = nslookup(record_type(family), &name);
    let answer = until(&format!("{}: `{ask}` runs", stage.second().id()), PATIENCE * 3, async || {
        let answer = stage.second().ask(&ask).await;
        if answer.printed.is_ok() { Ok(answer) } else { Err(answer.seen().to_owned()) }
    })
    .await;
    assert!(!answer.ok && answer.seen().contains("NXDOMAIN"), "{}: {}", stage.second().id(), answer.seen());
}
