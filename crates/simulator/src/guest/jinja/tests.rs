use proptest::prelude::*;
use serde_json::json;

use super::*;

fn facts() -> Value {
    json!({
        "instance_id": "11-22",
        "local_hostname": "worker-0",
        "v1": {"local_hostname": "worker-0", "instance_id": "11-22"},
        "ds": {"meta_data": {"uuid": "11-22", "local-hostname": "worker-0.novalocal", "n": 3, "list": ["a", "b"]}},
    })
}

#[test]
fn variables_are_replaced_where_they_stand() {
    for (template, expected) in [
        ("plain } { text", "plain } { text"),
        ("{{ instance_id }}", "11-22"),
        ("{{instance_id}}", "11-22"),
        (
            "provider-id: openstack:///'{{ instance_id }}'",
            "provider-id: openstack:///'11-22'",
        ),
        ("name: '{{ local_hostname }}'\n", "name: 'worker-0'\n"),
        ("{{ v1.local_hostname }}", "worker-0"),
        ("{{ ds.meta_data.uuid }}", "11-22"),
        ("{{ ds.meta_data.local_hostname }}", "worker-0.novalocal"),
        (
            "{{ ds['meta_data'][\"local-hostname\"] }}",
            "worker-0.novalocal",
        ),
        ("{{ ds.meta_data.list[1] }}{{ ds.meta_data.n }}", "b3"),
        ("{{ nothing.here }}", "CI_MISSING_JINJA_VAR/nothing.here"),
        ("{{ nothing | default('x|y') }}", "x|y"),
        (
            "{{ local_hostname | upper | replace('-', '_') }}",
            "WORKER_0",
        ),
        ("a {#- not shown #} b", "a b"),
        ("a {{- n -}} b", "aCI_MISSING_JINJA_VAR/nb"),
        (
            "{% raw %}{{ instance_id }}{% endraw %}!",
            "{{ instance_id }}!",
        ),
        ("{{ 'literal' }}", "literal"),
    ] {
        assert_eq!(render(template, &facts()).unwrap(), expected, "{template}");
    }
}

#[test]
fn what_is_not_simulated_names_its_line() {
    for (template, line) in [
        ("\n{% if x %}", 2),
        ("{{ a", 1),
        ("\n\n{{ a + b }}", 3),
        ("{{ a | tojson }}", 1),
        ("{% raw %}", 1),
        ("{{ a[ }}", 1),
    ] {
        assert_eq!(
            render(template, &facts()).unwrap_err().line,
            line,
            "{template}"
        );
    }
}

proptest! {
    #[test]
    fn rendering_never_panics(template in "[{}%# a-z.|'\\[\\]()\\-\n\\PC]{0,80}") {
        let _ = render(&template, &facts());
    }

    #[test]
    fn text_without_tags_stays_as_it_is(text in "[^{]{0,200}") {
        prop_assert_eq!(render(&text, &facts()).unwrap(), text);
    }
}
