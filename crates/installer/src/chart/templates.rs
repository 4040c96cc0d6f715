//! Manifests of the managers as templates: expressions for values, and the text of the manifests for the rest.

use anyhow::{Context, ensure};
use api::providers::Provider;
use serde_json::{Value, json};

use crate::older::Older;
use crate::subset::Subset;
use crate::{manifests, names};

/// Directory of the CRDs below the directory of the templates.
pub(super) const DEFINITIONS: &str = "crds";

/// Placeholders for values, in the manifests before these become templates.
const NAMESPACE: &str = "NAMESPACE_OF_THE_RELEASE";
const IMAGE: &str = "IMAGE_OF_THE_RELEASE";
const CLOUDS: &str = "NAMESPACE_OF_CLOUDS";

/// Suffix of names for managers of some providers.
const SUFFIX: &str = r#"{{ include "ferrostack.suffix" . }}"#;
/// Condition for the kind of clouds to be among the kinds.
const HAS_CLOUDS: &str = r#"or .Values.openstackNamespace (not (include "ferrostack.suffix" .))"#;

/// Lines of the Deployment that depend on values: each occurs once, and is replaced by the lines beside.
const DEPLOYMENT: [(&str, &str); 10] = [
    ("  replicas: 2\n", "  replicas: {{ .Values.replicas }}\n"),
    (
        "    metadata:\n      labels:\n",
        r"    metadata:
      {{- with .Values.podAnnotations }}
      annotations:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      labels:
        {{- with .Values.podLabels }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
",
    ),
    (
        "      enableServiceLinks: false\n",
        r"      enableServiceLinks: false
      {{- with .Values.imagePullSecrets }}
      imagePullSecrets:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- with .Values.nodeSelector }}
      nodeSelector:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- with .Values.tolerations }}
      tolerations:
        {{- toYaml . | nindent 8 }}
      {{- end }}
",
    ),
    (
        "      priorityClassName: system-cluster-critical\n",
        r"      {{- with .Values.priorityClassName }}
      priorityClassName: {{ . }}
      {{- end }}
",
    ),
    (
        "      affinity:\n",
        r"      {{- with .Values.affinity }}
      affinity:
        {{- toYaml . | nindent 8 }}
      {{- else }}
      affinity:
",
    ),
    (
        "      topologySpreadConstraints:\n",
        r"      {{- end }}
      {{- with .Values.topologySpreadConstraints }}
      topologySpreadConstraints:
        {{- toYaml . | nindent 8 }}
      {{- else }}
      topologySpreadConstraints:
",
    ),
    (
        "      # Longer than the manager waits",
        "      {{- end }}\n      # Longer than the manager waits",
    ),
    (
        "        image: IMAGE_OF_THE_RELEASE\n",
        r#"        image: {{ include "ferrostack.image" . | quote }}
        {{- with .Values.image.pullPolicy }}
        imagePullPolicy: {{ . }}
        {{- end }}
        {{- with .Values.env }}
        env:
          {{- toYaml . | nindent 10 }}
        {{- end }}
"#,
    ),
    (
        "        - --log=info\n",
        "        - --log={{ .Values.log }}\n",
    ),
    (
        "        - --openstack-namespace=NAMESPACE_OF_CLOUDS\n",
        r#"        {{- if include "ferrostack.suffix" . }}
        - --providers={{ include "ferrostack.providers" . }}
        {{- end }}
        {{- with .Values.openstackNamespace }}
        - --openstack-namespace={{ . }}
        {{- end }}
        {{- with .Values.watchNamespace }}
        - --namespace={{ . }}
        {{- end }}
        {{- with .Values.watchFilter }}
        - --watch-filter={{ . }}
        {{- end }}
        {{- with .Values.extraArgs }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
"#,
    ),
];
/// Line of the Deployment before its requests and limits.
const RESOURCES: &str = "        resources:\n";

/// A template.
pub(super) struct Template {
    /// Path below the directory of the templates.
    pub(super) name: String,
    pub(super) text: String,
}

/// All [`Template`]s, in the order of the manifests.
pub(super) fn all(older: Older) -> anyhow::Result<Vec<Template>> {
    let subset = Subset::new([], true).serving(older);
    let mut manifests = manifests::render(&subset, NAMESPACE, Some(IMAGE), Some(CLOUDS))?;
    manifests.push_str("\n---\n");
    manifests.push_str(&manifests::CERT_MANAGER.replace(names::NAMESPACE, NAMESPACE));
    let mut all: Vec<Template> = Vec::new();
    for text in manifests.split("\n---\n") {
        let document: Value = serde_saphyr::from_str(text)?;
        let text = format!("---\n{}\n", text.trim_end());
        let Some(template) = template(&document, &text)? else {
            continue;
        };
        match all.iter_mut().find(|it| it.name == template.name) {
            Some(file) => file.text.push_str(&template.text),
            None => all.push(template),
        }
    }
    Ok(all)
}

/// [`Template`] of a document; none for the namespace of the release, which Helm creates.
fn template(document: &Value, text: &str) -> anyhow::Result<Option<Template>> {
    let kind = document["kind"].as_str().unwrap_or_default();
    let metadata = &document["metadata"];
    let name = metadata["name"].as_str().unwrap_or_default();
    if kind == "Namespace" && name == NAMESPACE {
        return Ok(None);
    }
    let escaped = text.replace("{{", r#"{{ "{{" }}"#);
    let of_clouds = [&metadata["namespace"], &metadata["name"]].contains(&&json!(CLOUDS))
        || name == manifests::NODES_OF_CLOUDS;
    let (file, text) = match kind {
        _ if of_clouds => {
            let condition = ".Values.openstackNamespace";
            ("openstack.yaml".to_owned(), when(condition, &escaped))
        }
        "CustomResourceDefinition" => {
            let group = document["spec"]["group"].as_str().unwrap_or_default();
            let text = definition(&escaped, group)?;
            (format!("{DEFINITIONS}/{name}.yaml"), text)
        }
        "MutatingWebhookConfiguration" | "ValidatingWebhookConfiguration" => {
            ("webhooks.yaml".to_owned(), webhooks(document.clone())?)
        }
        "ClusterRole" => ("rbac.yaml".to_owned(), role(&escaped)?),
        "ServiceAccount" => ("rbac.yaml".to_owned(), account(&escaped)?),
        "ClusterRoleBinding" | "Role" | "RoleBinding" => ("rbac.yaml".to_owned(), escaped),
        "PodDisruptionBudget" => {
            let text = when(".Values.podDisruptionBudget.enabled", &escaped);
            ("deployment.yaml".to_owned(), text)
        }
        "NetworkPolicy" => {
            let text = when(".Values.networkPolicy.enabled", &escaped);
            ("deployment.yaml".to_owned(), text)
        }
        "Deployment" => ("deployment.yaml".to_owned(), deployment(&escaped)?),
        "Service" => ("service.yaml".to_owned(), escaped),
        "Issuer" => {
            let condition = "and .Values.certManager.enabled (not .Values.certManager.issuerRef)";
            ("certificate.yaml".to_owned(), when(condition, &escaped))
        }
        "Certificate" => ("certificate.yaml".to_owned(), certificate(&escaped)?),
        other => anyhow::bail!("the chart has no template for a {other}"),
    };
    let text = manifests::renamed(&text, |name| format!("{name}{SUFFIX}"));
    let text = text.replace(NAMESPACE, "{{ .Release.Namespace }}");
    let text = text.replace(CLOUDS, "{{ .Values.openstackNamespace }}");
    Ok(Some(Template { name: file, text }))
}

/// Lines present if a condition holds.
fn when(condition: &str, text: &str) -> String {
    format!("{{{{- if {condition} }}}}\n{text}{{{{- end }}}}\n")
}

/// Condition for a [`Provider`] to run.
fn runs(provider: Provider) -> String {
    format!(r#"has "{provider}" (splitList "," (include "ferrostack.providers" .))"#)
}

/// Condition for an API group to have kinds of running providers.
fn has(group: &str) -> String {
    let mut providers = Provider::ALL.into_iter();
    let found = providers.find(|it| it.groups().contains(&group));
    found.map_or_else(|| HAS_CLOUDS.to_owned(), runs)
}

/// Replaces a text that must occur once.
fn replaced(text: &str, from: &str, to: &str) -> anyhow::Result<String> {
    let count = text.matches(from).count();
    ensure!(
        count == 1,
        "the manifests have these lines {count} times, and not once: {from}"
    );
    Ok(text.replace(from, to))
}

fn definition(text: &str, group: &str) -> anyhow::Result<String> {
    let keep = when(
        ".Values.crds.keep",
        "    helm.sh/resource-policy: \"keep\"\n",
    );
    let annotations = "\n  annotations:\n";
    let inject = match text.contains("\n    strategy: Webhook\n") {
        true => injected("    "),
        false => String::new(),
    };
    let text = replaced(text, annotations, &format!("{annotations}{keep}{inject}"))?;
    let providers = Subset::new([], true).names(",");
    let text = replaced(
        &text,
        &format!(": {providers}\n"),
        ": {{ include \"ferrostack.providers\" . }}\n",
    )?;
    let condition = format!("and .Values.crds.enabled ({})", has(group));
    Ok(when(&condition, &text))
}

/// Annotation for cert-manager, after `before`: cert-manager writes the authority of the webhooks into the object.
fn injected(before: &str) -> String {
    when(
        ".Values.certManager.enabled",
        &format!(
            "{before}{}: {}\n",
            manifests::INJECT,
            manifests::certificate(NAMESPACE)
        ),
    )
}

fn certificate(text: &str) -> anyhow::Result<String> {
    let (start, reference) = text
        .split_once("  issuerRef:\n")
        .context("the Certificate has no issuerRef")?;
    let values = r"  issuerRef:
    {{- with .Values.certManager.issuerRef }}
    {{- toYaml . | nindent 4 }}
    {{- else }}
";
    let text = format!("{start}{values}{reference}    {{{{- end }}}}\n");
    Ok(when(".Values.certManager.enabled", &text))
}

/// Webhook configuration with the rules for the groups of running providers, if any.
fn webhooks(mut configuration: Value) -> anyhow::Result<String> {
    const RULES: &str = "RULES_OF_THE_WEBHOOK";
    let hook = &mut configuration["webhooks"][0];
    let rules = std::mem::replace(&mut hook["rules"], json!(RULES));
    let (mut lines, mut conditions) = (String::from("\n"), Vec::new());
    for rule in rules.as_array().into_iter().flatten() {
        let condition = has(rule["apiGroups"][0].as_str().unwrap_or_default());
        let text = serde_saphyr::to_string(&json!([rule]))?;
        let indented: Vec<String> = text.lines().map(|line| format!("    {line}\n")).collect();
        lines.push_str(&when(&condition, &indented.concat()));
        if !conditions.contains(&condition) {
            conditions.push(condition);
        }
    }
    let text = serde_saphyr::to_string(&configuration)?;
    let text = replaced(&text, &format!(" {RULES}\n"), &lines)?;
    let inject = injected("  annotations:\n    ");
    let text = replaced(&text, "\nmetadata:\n", &format!("\nmetadata:\n{inject}"))?;
    let any: Vec<String> = conditions.iter().map(|it| format!("({it})")).collect();
    Ok(when(
        &format!("or {}", any.join(" ")),
        &format!("---\n{text}"),
    ))
}

/// Role with the rules of running providers.
fn role(text: &str) -> anyhow::Result<String> {
    let mut text = text.to_owned();
    for provider in Provider::ALL {
        let rules = manifests::rules(provider);
        text = replaced(&text, rules, &when(&runs(provider), rules))?;
    }
    Ok(text)
}

fn account(text: &str) -> anyhow::Result<String> {
    let end = format!("  namespace: {NAMESPACE}\n");
    let annotations = r"  {{- with .Values.serviceAccount.annotations }}
  annotations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
";
    replaced(text, &end, &format!("{end}{annotations}"))
}

fn deployment(text: &str) -> anyhow::Result<String> {
    let mut text = text.to_owned();
    for (from, to) in DEPLOYMENT {
        text = replaced(&text, from, to)?;
    }
    for (line, more) in manifests::MOUNTED {
        let more = when(".Values.certManager.enabled", more);
        text = replaced(&text, line, &format!("{more}{line}"))?;
    }
    // What stands before the probe comes after the requests and limits.
    let after = when(".Values.certManager.enabled", manifests::MOUNTED[2].1);
    let after = after.as_str();
    let (start, rest) = text
        .split_once(RESOURCES)
        .context("the Deployment has no resources")?;
    let (_, end) = rest
        .split_once(after)
        .context("nothing follows the resources")?;
    let values = r"        {{- with .Values.resources }}
        resources:
          {{- toYaml . | nindent 10 }}
        {{- end }}
";
    Ok(format!("{start}{values}{after}{end}"))
}
