//! The keys and certificates of one cluster, made in memory and written beside its logs.

use std::fs;
use std::path::Path;

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, KeyUsagePurpose,
};

use crate::error::{Doing, Result};

/// What the parts of a cluster and its clients need to know.
pub(crate) struct Pki {
    /// The cluster's own authority, as PEM for kubeconfigs.
    pub(crate) ca_pem: String,
    /// The same as DER for our client.
    pub(crate) ca_der: Vec<u8>,
}

/// For an API server that is reached at `addresses` besides the loopback. Writes `ca.crt`, `api.crt`, `api.key` (the API server's) and `sa.key` with `sa.pub` (ServiceAccount tokens) into `dir`.
pub(crate) fn make(dir: &Path, cluster: &str, addresses: &[String]) -> Result<Pki> {
    let mut ca = CertificateParams::default();
    ca.distinguished_name.push(DnType::CommonName, format!("testbed-ca-{cluster}"));
    ca.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    ca.key_usages = vec![KeyUsagePurpose::DigitalSignature, KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    let ca_key = KeyPair::generate().doing("making the authority's key")?;
    let ca_cert = ca.self_signed(&ca_key).doing("making the authority")?;
    let issuer = Issuer::new(ca, ca_key);

    let names = ["localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc", "127.0.0.1", "::1"];
    let names = names
        .iter()
        .map(|name| (*name).to_owned())
        .chain(["kubernetes.default.svc.cluster.local".to_owned()])
        .chain(addresses.iter().cloned());
    let mut api = CertificateParams::new(names.collect::<Vec<_>>()).doing("naming the API server")?;
    api.distinguished_name.push(DnType::CommonName, "kube-apiserver");
    api.use_authority_key_identifier_extension = true;
    api.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    api.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    let api_key = KeyPair::generate().doing("making the API server's key")?;
    let api_cert = api.signed_by(&api_key, &issuer).doing("making the API server's certificate")?;
    let sa_key = KeyPair::generate().doing("making the ServiceAccounts' key")?;

    let ca_pem = ca_cert.pem();
    for (file, text) in [
        ("ca.crt", ca_pem.clone()),
        ("api.crt", api_cert.pem()),
        ("api.key", api_key.serialize_pem()),
        ("sa.key", sa_key.serialize_pem()),
        ("sa.pub", sa_key.public_key_pem()),
    ] {
        fs::write(dir.join(file), text).doing(dir.join(file).display())?;
    }
    Ok(Pki { ca_pem, ca_der: ca_cert.der().to_vec() })
}
