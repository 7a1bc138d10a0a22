//! Tests of the page: its form, and the sums that must hold on it.

use std::collections::HashMap;

use super::*;

fn now(levels: &MomentLevels) {
    levels.texts.set(1);
    levels.most_texts.set(2);
    levels.set_gave_up(5);
}

/// The numbers of a page by their names with labels.
fn read(text: &str) -> HashMap<String, f64> {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let pairs = lines.map(|line| line.rsplit_once(' ').unwrap());
    pairs.map(|(name, value)| (name.to_owned(), value.parse().unwrap())).collect()
}

#[test]
fn every_line_has_a_head_and_a_number() {
    let metrics = Metrics::default();
    metrics.answered(Endpoint::Chat, 200, Duration::from_millis(30));
    metrics.answered(Endpoint::Chat, 200, Duration::from_secs(100));
    metrics.drafted.add(3);
    metrics.mask_time.add(Duration::from_millis(1500));
    metrics.batch_sizes.add_size(3);
    let text = metrics.text(now);
    let mut name = "";
    for line in text.lines() {
        if let Some(head) = line.strip_prefix("# TYPE ") {
            name = head.split(' ').next().unwrap();
        } else if !line.starts_with('#') {
            let (left, value) = line.rsplit_once(' ').unwrap();
            assert!(left.starts_with(name) && value.parse::<f64>().is_ok(), "{line}");
        }
    }
    assert!(text.ends_with("# EOF\n"), "{text}");
    for line in [
        "domino_requests_total{endpoint=\"chat\",code=\"200\"} 2",
        "domino_drafted_tokens_total 3",
        "domino_mask_seconds_total 1.5",
        "domino_stalled_total 5",
        "domino_request_seconds_bucket{le=\"0.025\"} 0",
        "domino_request_seconds_bucket{le=\"0.05\"} 1",
        "domino_request_seconds_bucket{le=\"60.0\"} 1",
        "domino_request_seconds_bucket{le=\"+Inf\"} 2",
        "domino_request_seconds_sum 100.03",
        "domino_request_seconds_count 2",
        "domino_batch_size_bucket{le=\"2.0\"} 0",
        "domino_batch_size_bucket{le=\"4.0\"} 1",
        "domino_texts 1",
    ] {
        assert!(text.lines().any(|other| other == line), "{line} is not in\n{text}");
    }
    // What was given up is counted once, however often the page is made.
    assert_eq!(read(&metrics.text(now))["domino_stalled_total"], 5.0);
}

#[test]
fn requests_add_up_on_every_page() {
    let metrics = Metrics::default();
    let statuses = [200, 499, 400, 503, 204, 429, 408];
    std::thread::scope(|scope| {
        for worker in 0..4 {
            let metrics = &metrics;
            scope.spawn(move || {
                for round in 0..200 {
                    metrics.begun();
                    let status = statuses[(round + worker) % statuses.len()];
                    metrics.answered(Endpoint::Completions, status, Duration::from_millis(1));
                }
            });
        }
        for _ in 0..100 {
            let page = read(&metrics.text(now));
            let of = |name: &str| page[&format!("domino_requests_{name}")];
            let ended = of("finished_total") + of("cancelled_total") + of("failed_total");
            assert_eq!(of("started_total"), ended + of("running"), "{page:?}");
        }
    });
    let page = read(&metrics.text(now));
    assert_eq!(page["domino_requests_started_total"], 800.0);
    assert_eq!(page["domino_requests_running"], 0.0);
    let all: f64 =
        page.iter().filter(|(name, _)| name.starts_with("domino_requests_total")).map(|(_, n)| n).sum();
    assert_eq!(all, 800.0);
}
