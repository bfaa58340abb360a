//! The store, on SQLite, on a real PostgreSQL and in memory: one suite for all, real processes that are killed, broken databases.
#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a failure here is the failure of a test")]

mod audit;
mod database_failures;
mod evaluations;
mod invalid_rows;
mod migrations;
mod parking;
mod postgres_failures;
mod processes;
mod queue;
mod reviews;
mod runs;
mod tasks;
mod test_database;
mod triggers;

/// Runs each test on SQLite, and all of them on one PostgreSQL server, each in a database of its own.
macro_rules! on_both {
    ($($module:ident :: $name:ident),* $(,)?) => {
        mod sqlite {
            $(#[tokio::test] async fn $name() { crate::store::$module::$name(&crate::store::test_database::TestDatabase::sqlite()).await; })*
        }

        #[tokio::test]
        async fn the_same_suite_on_postgresql() {
            let Some(server) = cliq_testkit::PostgresServer::start() else { return };
            $(
                println!("{}", stringify!($name));
                crate::store::$module::$name(&crate::store::test_database::TestDatabase::postgres(&server)).await;
            )*
        }
    };
}

on_both! {
    queue::a_signal_is_claimed_once_and_finished_once,
    queue::a_stale_worker_cannot_finish_what_was_claimed_anew,
    queue::a_worker_that_begins_again_takes_back_its_own_claims,
    queue::a_plan_changes_with_all_that_belongs_to_it_or_not_at_all,
    queue::files_come_in_whole_and_in_order,
    queue::files_that_are_alike,
    queue::a_newer_file_replaces_what_a_crash_left,
    runs::a_run_is_stored_as_it_is,
    runs::runs_are_searched,
    runs::a_lease_has_one_holder_until_it_is_over,
    runs::a_change_from_an_old_version_is_refused_with_its_events,
    runs::many_events_of_one_change_keep_their_order,
    runs::a_caller_that_goes_away_keeps_nobody_out,
    runs::lists_have_each_run_once,
    runs::the_queue_is_first_in_first_out,
    runs::a_project_is_registered_once,
    runs::a_revoked_token_is_gone,
    runs::usage_is_summed_by_team,
    runs::a_resumed_run_keeps_its_former_outcome_in_its_row,
    runs::later_run_of_a_workspace_is_found,
    runs::trials_are_not_among_runs_and_usage,
    tasks::a_message_makes_one_task_of_its_owner,
    tasks::tasks_are_listed_last_changed_first,
    tasks::receivers_are_due_while_events_are_left,
    reviews::a_review_is_stored_as_it_is,
    reviews::of_two_answers_at_the_same_moment_one_counts,
    reviews::lists_and_removal,
    reviews::requests_are_in_the_audit_log,
    parking::decision_wakes_the_run_that_waits_for_it,
    parking::run_that_parks_after_the_decision_is_woken_at_once,
    parking::parking_and_deciding_at_the_same_moment_wakes_the_run_once,
    parking::cancelled_run_leaves_no_review_pending,
    parking::queue_has_woken_and_new_runs,
    parking::due_runs_are_found_in_order,
    evaluations::an_evaluation_is_stored_with_its_trials,
    evaluations::a_trial_finishes_once,
    triggers::mark_moves_once_with_its_firings,
    triggers::delivery_has_one_firing_and_replays_are_refused,
    triggers::firing_starts_one_run,
    triggers::group_admits_one_run_at_a_time,
    triggers::end_of_a_run_is_consumed_once,
    triggers::old_firings_are_removed_with_their_keys,
    triggers::paused_trigger_keeps_its_mark,
    audit::entries_are_kept_in_order_and_never_changed,
    audit::sign_in_is_completed_once,
    invalid_rows::broken_cell_is_an_error_that_names_it,
    invalid_rows::cell_of_another_type_is_an_error,
    migrations::opening_again_changes_nothing,
    processes::each_signal_is_processed_exactly_once,
}

/// Runs each test on the store in memory, which unit tests use in place of a database.
macro_rules! in_memory {
    ($($module:ident :: $name:ident),* $(,)?) => {
        mod memory {
            $(#[tokio::test] async fn $name() { crate::store::$module::$name(&super::test_database::Memory::new()).await; })*
        }
    };
}

in_memory! {
    runs::runs_are_searched,
    runs::a_run_is_stored_as_it_is,
    runs::a_change_from_an_old_version_is_refused_with_its_events,
    runs::many_events_of_one_change_keep_their_order,
    runs::lists_have_each_run_once,
    runs::the_queue_is_first_in_first_out,
    runs::a_project_is_registered_once,
    runs::a_revoked_token_is_gone,
    runs::usage_is_summed_by_team,
    runs::a_lease_has_one_holder_until_it_is_over,
    runs::a_resumed_run_keeps_its_former_outcome_in_its_row,
    runs::later_run_of_a_workspace_is_found,
    runs::trials_are_not_among_runs_and_usage,
    tasks::a_message_makes_one_task_of_its_owner,
    tasks::tasks_are_listed_last_changed_first,
    tasks::receivers_are_due_while_events_are_left,
    triggers::mark_moves_once_with_its_firings,
    triggers::delivery_has_one_firing_and_replays_are_refused,
    triggers::firing_starts_one_run,
    triggers::group_admits_one_run_at_a_time,
    triggers::end_of_a_run_is_consumed_once,
    triggers::old_firings_are_removed_with_their_keys,
    triggers::paused_trigger_keeps_its_mark,
    evaluations::an_evaluation_is_stored_with_its_trials,
    evaluations::a_trial_finishes_once,
    audit::sign_in_is_completed_once,
    queue::a_signal_is_claimed_once_and_finished_once,
    queue::a_stale_worker_cannot_finish_what_was_claimed_anew,
    queue::a_worker_that_begins_again_takes_back_its_own_claims,
    queue::a_plan_changes_with_all_that_belongs_to_it_or_not_at_all,
    queue::files_come_in_whole_and_in_order,
    queue::files_that_are_alike,
    queue::a_newer_file_replaces_what_a_crash_left,
    reviews::a_review_is_stored_as_it_is,
    reviews::of_two_answers_at_the_same_moment_one_counts,
    reviews::lists_and_removal,
    parking::decision_wakes_the_run_that_waits_for_it,
    parking::run_that_parks_after_the_decision_is_woken_at_once,
    parking::parking_and_deciding_at_the_same_moment_wakes_the_run_once,
    parking::cancelled_run_leaves_no_review_pending,
    parking::queue_has_woken_and_new_runs,
    parking::due_runs_are_found_in_order,
}
