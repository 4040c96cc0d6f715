use proptest::prelude::*;
use serde_json::json;

use super::*;

fn facts() -> Value {
    json!({
        "on": true, "off": false, "none": null,
        "instance_id": "11-22",
        "local_hostname": "worker-0",
        "v1": {"local_hostname": "worker-0", "instance_id": "11-22"},
        "ds": {"meta_data": {"uuid": "11-22", "local-hostname": "worker-0.novalocal", "n": 3, "list": ["a", "b"]}},
    })
}

/// Templates with their results of Jinja 3.1.6, with the options of cloud-init.
#[test]
fn templates_are_rendered_as_by_cloud_init() {
    for (template, expected) in [
        ("plain } { text", "plain } { text"),
        ("{{instance_id}}", "11-22"),
        (
            "id: openstack:///'{{ instance_id }}'",
            "id: openstack:///'11-22'",
        ),
        ("name: '{{ local_hostname }}'\n", "name: 'worker-0'\n"),
        ("x\n\n", "x\n\n"),
        ("{{ v1.local_hostname }}", "worker-0"),
        ("{{ ds.meta_data.local_hostname }}", "worker-0.novalocal"),
        (
            "{{ ds['meta_data'][\"local-hostname\"] }}",
            "worker-0.novalocal",
        ),
        ("{{ ds.meta_data.list[1] }}{{ ds.meta_data.n * 2 }}", "b6"),
        ("{{ ds.meta_data.list }}", "['a', 'b']"),
        ("{{ on }}{{ off }}{{ none }}", "TrueFalseNone"),
        ("{{ nothing }}", "CI_MISSING_JINJA_VAR/nothing"),
        ("{{ v1.nothing }}", "CI_MISSING_JINJA_VAR/nothing"),
        ("{{ ds.meta_data.list[9] }}", "CI_MISSING_JINJA_VAR/9"),
        ("{{ nothing ~ 'x' }}", "CI_MISSING_JINJA_VAR/nothingx"),
        ("{{ nothing | default('x|y') }}", "x|y"),
        ("{{ off | default('z', true) }}", "z"),
        ("{{ nothing is defined }}", "False"),
        ("{{ nothing == 'x' }}", "False"),
        (
            "{{ local_hostname | upper | replace('-', '_') }}",
            "WORKER_0",
        ),
        ("{{ ds.meta_data.list | join(',') }}", "a,b"),
        ("{{ 'uuid' in ds.meta_data }}", "True"),
        ("{{ 'a' if on else 'b' }}", "a"),
        ("{% if nothing %}a{% else %}b{% endif %}", "b"),
        ("{% for x in nothing %}a{% endfor %}-", "-"),
        (
            "{% for x in ds.meta_data.list %}{{ x }},{% endfor %}\nend\n",
            "a,b,end\n",
        ),
        (
            "{% if v1.instance_id is defined %}\nyes\n{% endif %}\nno\n",
            "yes\nno\n",
        ),
        ("{% for i in range(3) %}{{ loop.index }}{% endfor %}", "123"),
        ("{% set x = 3 %}{{ x + 1 }}", "4"),
        ("a {#- not shown #} b", "a b"),
        ("a {{- n -}} b", "aCI_MISSING_JINJA_VAR/nb"),
        (
            "{% raw %}{{ instance_id }}{% endraw %}!",
            "{{ instance_id }}!",
        ),
        ("{{ '<' }}", "<"),
    ] {
        assert_eq!(render(template, &facts()).unwrap(), expected, "{template}");
    }
}

#[test]
fn errors_name_their_line() {
    for (template, line) in [
        ("\n{% if x %}", 2),
        ("{{ a", 1),
        ("\n\n{{ a + 1 }}", 3),
        ("{{ nothing.here }}", 1),
        ("\n{{ v1.nothing.more }}", 2),
        ("{{ local_hostname | regex_replace('a', 'b') }}", 1),
        ("{% raw %}", 1),
        ("{{ a[ }}", 1),
    ] {
        let error = render(template, &facts()).unwrap_err();
        assert_eq!(error.line, line, "{template}: {error}");
    }
    let error = render("{{ v1.nothing.more }}", &facts()).unwrap_err();
    assert_eq!(error.problem, "undefined value: 'nothing' is undefined");
}

#[test]
fn a_loop_without_end_is_an_error() {
    let rows = "{% for a in range(9000) %}".repeat(3);
    let ends = "{% endfor %}".repeat(3);
    let error = render(&format!("{rows}x{ends}"), &facts()).unwrap_err();
    assert!(error.problem.contains("fuel"), "{error}");
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
