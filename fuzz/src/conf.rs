//! Target for cloud.conf, as both programs read it.

use cloud_conf::{CloudConf, Program, Severity, Source};

/// Parses a file with [`CloudConf::parse`]: either settings, or findings with an error; each finding has a line of the
/// file. A named cloud is found by its name.
pub fn file(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    let lines = text.split(['\n', '\r']).count();
    for program in [Program::CinderCsi, Program::CloudControllerManager] {
        let findings = match CloudConf::parse(text, program) {
            Ok(parsed) => {
                for name in parsed.conf.clouds.keys() {
                    drop(parsed.conf.cloud(name).map(|global| global.cloud(None)));
                }
                assert!(
                    parsed
                        .warnings
                        .iter()
                        .all(|it| it.severity == Severity::Warning)
                );
                parsed.warnings
            }
            Err(rejected) => {
                let mut findings = rejected.findings.iter();
                assert!(findings.any(|it| it.severity == Severity::Error));
                assert!(!rejected.to_string().is_empty());
                rejected.findings
            }
        };
        for finding in findings {
            assert!(finding.line <= lines, "line {} of {lines}", finding.line);
            assert!(!finding.message.is_empty());
        }
        let twice = ["one", "two"].map(|name| Source { name, text });
        drop(CloudConf::merge(&twice, program));
    }
}
