/* All subsystems, in the order in which the worker's passes run them; they end in reverse order.
 * What the order must keep:
 *
 * - link comes first, so that it closes last: once the connection ends the agent may give our bit
 * to another client.
 * - level is settled before anything is asked or told at that level.
 * - learn before stream: a sample is read before its stream is seen finished.
 * - stream before all that uses the totals; ahead before forms before tuning before preempt, as
 *   forms are made.
 * - status tells what all others found. worker comes last, so that it has finished with a client
 *   before any other row forgets it.
 */
#include "client/link.h"
#include "client/stream.h"
#include "client/subsystem.h"
#include "client/worker.h"
#include "entry/linker.h"
#include "entry/status.h"
#include "gates/copies.h"
#include "gates/demand-pages.h"
#include "gates/demand.h"
#include "gates/expect.h"
#include "gates/gate.h"
#include "gates/level-change.h"
#include "gates/need-auto.h"
#include "gates/need-choice.h"
#include "gates/priority.h"
#include "gates/start.h"
#include "gates/waiting.h"
#include "launch/learn.h"
#include "launch/loops.h"
#include "launch/preempt-slot.h"
#include "launch/sliced.h"
#include "launch/uncounted.h"
#include "measure/predict.h"
#include "memory/memory.h"
#include "preempt/ahead.h"
#include "preempt/code.h"
#include "preempt/first-launch.h"
#include "preempt/forms.h"
#include "preempt/function.h"
#include "preempt/new-code.h"
#include "preempt/tuning.h"
#include "shim/ioctl.h"

static void tuning_look(struct client *client, struct tick *tick)
{
	tick->forms |= tuning_pending(client);
}

static void tuning_drive(struct client *client, struct tick *tick)
{
	(void)tick;
	if (tuning_pending(client))
		tuning_work(client);
}

#define STATE(name) .state = name##_table, .state_size = sizeof(name##_table[0])

// clang-format off
const struct subsystem subsystems[] = {
	{"memory", .fork = memory_forget},
	{"channels", .fork = channel_groups_fork},
	{"link", .start = link_start, .init = link_init, .open = link_open, .ready = link_wake,
	 .forget = link_close, .fork = link_fork},
	{"level", .init = level_init, .open = level_open, .look = level_look, .drive = level_drive,
	 .work = level_work, .forget = level_forget},
	{"learn", STATE(learning), .open = learn_open, .look = learn_look, .drive = learn_drive,
	 .work = learn_work},
	{"stream", .init = stream_init, .look = stream_look, .drive = stream_drive, .work = stream_work,
	 .forget = stream_forget, .fork = stream_fork},
	{"sms", .settings = sms_settings, STATE(sms), .open = sms_open},
	{"need choice", STATE(need_choices), .work = need_choice_work},
	{"need auto", STATE(need_auto), .work = need_auto_work},
	{"copies", .settings = copies_settings},
	{"demand", STATE(demand), .stream_gone = demand_stream_gone, .work = demand_work,
	 .forget = demand_drop, .stop = demand_drop},
	{"expect", .settings = expect_settings, .init = expect_init, .stream_gone = expect_stream_gone,
	 .look = expect_look, .drive = expect_drive, .work = expect_work, .forget = expect_forget, .stop = expect_stop,
	 .fork = expect_fork},
	{"gate", STATE(gating), .init = gate_init, .look = gate_look, .work = gate_work},
	{"waiting", STATE(waiters), .look = waiting_look, .work = waiting_work},
	{"priority", STATE(launch_order), .open = priority_open, .stream_made = priority_stream_made,
	 .work = priority_work},
	{"loops", STATE(loops), .fork = loops_fork},
	{"uncounted", .look = uncounted_look, .drive = uncounted_drive},
	{"start", STATE(start), .look = start_look, .work = start_work},
	{"predict", .round = predict_work},
	{"code", .fork = code_fork},
	{"linker", .fork = linker_fork},
	{"ahead", .look = ahead_look, .drive = ahead_drive, .fork = new_code_fork},
	{"function", .forget = function_forget, .fork = function_fork},
	{"forms", .look = forms_look, .drive = forms_drive, .forget = forms_forget, .fork = forms_fork},
	{"first launch", .settings = first_launch_settings, STATE(first_launch),
	 .look = first_launch_look, .drive = first_launch_drive},
	{"tuning", .settings = tuning_init, .code_gone = tuning_code_gone, .look = tuning_look,
	 .drive = tuning_drive, .forget = tuning_forget},
	{"preempt", .init = preempt_init, .stream_gone = preempt_stream_gone,
	 .look = preempt_look, .drive = preempt_drive, .forget = preempt_forget},
	{"sliced", .work = sliced_work},
	{"status", .work = status_work},
	{"worker", .start = worker_start, .leave = worker_leave, .fork = worker_fork},
};
// clang-format on
const size_t n_subsystems = countof(subsystems);
