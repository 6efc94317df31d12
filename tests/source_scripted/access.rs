//! Credentials that can't be used are refused with the place and the remedy.

use namesake::source::Convert;
use namesake::source::kube::{Access, KubeError, KubeSource};
use serde_json::{Value, json};
use std::sync::Arc;
use tempfile::TempDir;

async fn refused(text: &str, context: Option<&str>) -> KubeError {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("kubeconfig");
    std::fs::write(&file, text).unwrap();
    let access = Access::Kubeconfig { file, context: context.map(str::to_owned) };
    KubeSource::new(access, Convert::default(), Arc::new(())).await.unwrap_err()
}

fn kubeconfig(cluster: &Value, user: &Value) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "here",
        "clusters": [{"name": "c", "cluster": cluster}], "users": [{"name": "u", "user": user}],
        "contexts": [{"name": "here", "context": {"cluster": "c", "user": "u"}},
                     {"name": "lost", "context": {"cluster": "nowhere", "user": "u"}}],
    })
}

#[tokio::test]
async fn errors_name_file_context_and_remedy() {
    let good = kubeconfig(&json!({"server": "https://127.0.0.1:6443"}), &json!({"token": "t"}));
    let mut contextless = good.clone();
    contextless["current-context"] = Value::Null;
    let bad_ca = json!({"server": "https://127.0.0.1:6443", "certificate-authority-data": "%%%"});
    let no_file = json!({"server": "https://127.0.0.1:6443", "certificate-authority": "/does/not/exist"});
    for (text, context, words) in [
        ("clusters: [".to_owned(), None, ["kubeconfig", "--kubeconfig"]),
        (good.to_string(), Some("there"), ["no context \"there\"", "here, lost"]),
        (good.to_string(), Some("lost"), ["context \"lost\"", "nowhere"]),
        (contextless.to_string(), None, ["no current-context", "--context"]),
        (kubeconfig(&json!({}), &json!({})).to_string(), None, ["url is missing", "correct its cluster"]),
        (kubeconfig(&bad_ca, &json!({})).to_string(), None, ["base64", "context \"here\""]),
        (kubeconfig(&no_file, &json!({})).to_string(), None, ["/does/not/exist", "context \"here\""]),
    ] {
        let shown = refused(&text, context).await.to_string();
        for word in words {
            assert!(shown.contains(word), "{word:?} is not in: {shown}");
        }
        assert!(shown.contains("/kubeconfig"), "{shown}");
    }
}

#[tokio::test]
async fn a_missing_kubeconfig_and_a_missing_pod_are_named() {
    let access = Access::Kubeconfig { file: "/does/not/exist".into(), context: None };
    let shown = KubeSource::new(access, Convert::default(), Arc::new(())).await.unwrap_err().to_string();
    assert!(shown.contains("/does/not/exist") && shown.contains("--kubeconfig"), "{shown}");
    if std::env::var_os("KUBERNETES_SERVICE_HOST").is_none() {
        let error = KubeSource::new(Access::InCluster, Convert::default(), Arc::new(())).await.unwrap_err();
        assert!(matches!(error, KubeError::NotInCluster { .. }) && error.to_string().contains("--from"), "{error}");
    }
}
