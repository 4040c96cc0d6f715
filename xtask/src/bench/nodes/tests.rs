use super::*;

const OUTPUT: &str = "\
start                                                  0.0 s
the control plane answers                             30.5 s
2 nodes Ready                                         11.5 s
Cluster Available, Machines Running                    1.0 s
two replicas run                                       2.2 s
memory of 957d0d10 (resident, without caches) 404 MB
memory of a9bc58ed (resident, without caches) 72 MB
cloud-init's first line 1.4 s
cluster deleted                                        5.3 s
all                                                   99.0 s
";

#[test]
fn the_figures_of_a_cluster_are_read_from_its_steps() {
    let figures = machines(OUTPUT, &["1".to_owned(), "1".to_owned()], 90.0).unwrap();
    let values: Vec<_> = figures.iter().map(|it| (it.value, it.unit)).collect();
    assert_eq!(
        values,
        [(43.0, "s"), (404.0, "MB"), (72.0, "MB"), (1.4, "s")]
    );
    assert_eq!(figures[0].what, "1 + 1: Cluster Available");
}

#[test]
fn output_without_the_last_step_or_a_machine_is_an_error() {
    let counts = ["1".to_owned(), "1".to_owned()];
    let cut = OUTPUT.replace("Cluster Available", "Cluster not Available");
    assert!(machines(&cut, &counts, 90.0).is_err());
    let fewer = OUTPUT.replace("memory of a9bc58ed", "nothing of a9bc58ed");
    assert!(machines(&fewer, &counts, 90.0).is_err());
}

#[test]
fn a_figure_above_its_target_is_marked() {
    let figure = |value| Figure {
        what: "node up".to_owned(),
        value,
        unit: "s",
        target: 15.0,
    };
    let report = Report {
        machine: "two cores".to_owned(),
        load: [0.5, 2.0],
        figures: vec![figure(14.0), figure(16.0)],
    };
    let text = table(&report);
    let marked: Vec<_> = text.lines().filter(|it| it.contains("more than")).collect();
    assert_eq!(marked.len(), 1, "{text}");
    assert!(marked[0].contains("16.0"), "{text}");
}
