use serde_json::{Value, json};

use super::kubeconfig::inline;
use super::refusal::BadKubeconfig;

/// A kubeconfig that is fine, with these fields on top in its cluster and user.
fn with(cluster: &Value, user: &Value) -> Value {
    let mut config = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "c",
        "clusters": [{"name": "k", "cluster": {"server": "https://east.example:6443", "certificate-authority-data": "Q0E="}}],
        "users": [{"name": "u", "user": {"token": "t0ken"}}],
        "contexts": [{"name": "c", "context": {"cluster": "k", "user": "u"}}],
    });
    for (place, fields) in [("/clusters/0/cluster", cluster), ("/users/0/user", user)] {
        let target = config.pointer_mut(place).and_then(Value::as_object_mut).unwrap();
        target.extend(fields.as_object().unwrap().clone());
    }
    config
}

fn read(config: &Value) -> Result<crate::source::kube::Inline, BadKubeconfig> {
    inline(&config.to_string(), "kubeconfig", "Secret hub/east, key \"kubeconfig\"")
}

fn none() -> Value {
    json!({})
}

#[test]
fn mcs_r90_what_is_inline_is_taken_and_kept_out_of_logs() {
    let taken = read(&with(&none(), &none())).unwrap();
    assert_eq!(taken.server, "https://east.example:6443");
    assert_eq!(taken.ca.as_deref(), Some("Q0E="));
    assert_eq!(taken.token.as_ref().unwrap().reveal(), "t0ken");
    assert!(!format!("{taken:?}").contains("t0ken"), "{taken:?}");

    let certificate = json!({"token": null, "client-certificate-data": "Q1JU", "client-key-data": "S0VZ"});
    let taken = read(&with(&json!({"tls-server-name": "api"}), &certificate)).unwrap();
    assert_eq!((taken.certificate.as_deref(), taken.server_name.as_deref()), (Some("Q1JU"), Some("api")));
    assert!(taken.token.is_none() && !format!("{taken:?}").contains("S0VZ"));

    // What is there and says nothing is not refused.
    let idle = json!({"insecure-skip-tls-verify": false, "proxy-url": "", "certificate-authority": ""});
    let user = json!({"exec": null, "auth-provider": null, "tokenFile": "", "as-groups": []});
    assert!(read(&with(&idle, &user)).is_ok());
}

/// Cluster's fields, user's fields, and what the message must name.
#[test]
fn mcs_hostile_kubeconfigs_are_refused_field_by_field() {
    let hostile: &[(Value, Value, &str)] = &[
        (
            none(),
            json!({"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": "/bin/sh"}}),
            "exec of user \"u\"",
        ),
        (none(), json!({"exec": {}}), "exec of user"),
        (none(), json!({"exec": "sh"}), "exec of user"),
        (
            none(),
            json!({"auth-provider": {"name": "gcp", "config": {"cmd-path": "/bin/sh"}}}),
            "auth-provider of user \"u\"",
        ),
        (
            none(),
            json!({"tokenFile": "/var/run/secrets/kubernetes.io/serviceaccount/token"}),
            "tokenFile of user \"u\"",
        ),
        (none(), json!({"token-file": "/etc/shadow"}), "token-file of user"),
        (none(), json!({"client-certificate": "/etc/kubernetes/pki/admin.crt"}), "client-certificate of user"),
        (none(), json!({"client-key": "../../key"}), "client-key of user"),
        (none(), json!({"username": "admin", "password": "admin"}), "username of user"),
        (none(), json!({"as": "system:admin"}), "as of user"),
        (none(), json!({"as-groups": ["system:masters"]}), "as-groups of user"),
        (json!({"certificate-authority": "/etc/ssl/ca.pem"}), none(), "certificate-authority of cluster \"k\""),
        (json!({"insecure-skip-tls-verify": true}), none(), "insecure-skip-tls-verify of cluster \"k\""),
        (json!({"insecure-skip-tls-verify": "true"}), none(), "insecure-skip-tls-verify of cluster"),
        (json!({"proxy-url": "http://evil.example"}), none(), "proxy-url of cluster"),
        (json!({"proxy-url": "socks5://10.0.0.1:1080"}), none(), "proxy-url of cluster"),
        (json!({"server": "http://east.example"}), none(), "server \"http://east.example\""),
        (json!({"server": "east.example:6443"}), none(), "server \"east.example:6443\""),
        (json!({"server": "https://user:pass@east.example"}), none(), "server"),
        (json!({"server": "file:///etc/passwd"}), none(), "server"),
        (json!({"server": "unix:/run/docker.sock"}), none(), "server"),
        (json!({"server": "https://"}), none(), "server"),
    ];
    for (cluster, user, named) in hostile {
        let refused = read(&with(cluster, user)).expect_err(named);
        assert!(matches!(refused, BadKubeconfig::Refused { .. }), "{named}: {refused:?}");
        let text = refused.to_string();
        assert!(text.contains(named), "{named}: {text}");
        assert!(text.starts_with("key \"kubeconfig\": ") && text.contains(" is refused, since "), "{text}");
        assert!(text.contains("; "), "no remedy: {text}");
        assert!(!text.contains("t0ken") && !text.contains('\n'), "{text}");
    }
}

#[test]
fn mcs_what_is_no_whole_kubeconfig_is_named() {
    let whole = with(&none(), &none());
    let without = |pointer: &str, value: Value| {
        let mut config = whole.clone();
        *config.pointer_mut(pointer).unwrap() = value;
        read(&config).unwrap_err().to_string()
    };
    for (pointer, value, named) in [
        ("/current-context", json!("other"), "current-context \"other\" is not among its contexts"),
        ("/contexts/0/context/cluster", json!("other"), "no cluster \"other\""),
        ("/contexts/0/context/user", json!("other"), "no user \"other\""),
        ("/contexts/0/context", json!(null), "context \"c\" is empty"),
        ("/users/0/user", json!({}), "neither token nor client-certificate-data"),
        ("/users/0/user", json!(null), "no user \"u\""),
        ("/users/0/user", json!({"client-certificate-data": "Q1JU"}), "without client-key-data"),
        ("/users/0/user", json!({"client-key-data": "S0VZ"}), "without client-certificate-data"),
        ("/users/0/user", json!({"token": ["a"]}), "token is no text"),
        ("/clusters/0/cluster", json!({"certificate-authority-data": "Q0E="}), "it names no server"),
    ] {
        let text = without(pointer, value);
        assert!(text.contains(named), "{named}: {text}");
    }
    for text in ["", "%", "just text", "[]", "clusters: 7", "\0", "a: &a [*a]", &"[".repeat(10_000)] {
        let refused = inline(text, "value", "Secret").expect_err(text).to_string();
        assert!(refused.starts_with("key \"value\"") && refused.len() < 400, "{refused}");
    }
    // Bombs of YAML end at the parser's limits.
    let mut bomb = String::from("a0: &a0 [x,x,x,x,x,x,x,x,x]\n");
    for i in 1..30 {
        let before = i - 1;
        bomb.push_str(&format!("a{i}: &a{i} [*a{before},*a{before},*a{before},*a{before},*a{before}]\n"));
    }
    assert!(inline(&bomb, "value", "Secret").is_err());
}

#[test]
fn mcs_only_the_context_that_is_used_counts() {
    let mut config = with(&none(), &none());
    let users = config["users"].as_array_mut().unwrap();
    users.push(json!({"name": "other", "user": {"exec": {"command": "sh"}}}));
    assert!(read(&config).is_ok());
    config["current-context"] = json!("");
    assert!(read(&config).is_ok(), "the only one is meant");
    let contexts = config["contexts"].as_array_mut().unwrap();
    contexts.push(json!({"name": "second", "context": {"cluster": "k", "user": "other"}}));
    let text = read(&config).unwrap_err().to_string();
    assert!(text.contains("no current-context says which of its 2 is meant"), "{text}");
    config["current-context"] = json!("second");
    assert!(read(&config).unwrap_err().to_string().contains("exec"));
}
