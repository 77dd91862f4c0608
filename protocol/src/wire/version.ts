/**
 * Protocol versions and what each added.
 *
 * 1 — A hello with a signature over the TLS exporter; the operations apply, plan, and drift; reports that are
 *     acknowledged by sequence number. The final report of a plan may have a digest (`plan_digest`) to which an apply
 *     may be bound.
 * 2 — Output of running programs (`output_progress`, acknowledged by `output_taken`), verifications after an apply
 *     (`verify`), and the agent's clock in the hello and with changed attributes (`clock_ms`).
 * 3 — Terminals (`terminal_*`, and binary frames for their output and input), and a response for samples that could
 *     not be stored (`metrics_refused`).
 * 4 — Key rotation: the hello presents a new key with a statement signed by the old key (`key_statement`), and the
 *     welcome names the agent (`node_id`). Refusals of an expired key and of an unacceptable key (`key_replaced`,
 *     `key_refused`).
 * 5 — Statements of earlier rotations in the hello (`earlier_statements`), for an orchestrator that was restored from a
 *     backup, and the refusal of a key whose previous keys are all unknown (`key_unknown`).
 * 6 — Resource conditions that are evaluated on the machine (`only_if`). 7 — Services that react to a resource before
 * any later resource is applied (`immediate_on`), resource conditions with
 *     commands, negations, and lists (`only_if`), and contents of files that the agent fetches (`source`,
 *     `content_request`, and binary frames), the end of the maintenance window (`window_ends_at`), and further addresses of
 *     the orchestrator in the welcome (`addresses`).
 *
 * Every message has a strict schema, so neither side may send fields that are newer than the version of the link. The
 * challenge and the welcome contain that version.
 */
export const protocolVersion = 7;

/** Versions that this build supports, newest first: its own version and at least the two preceding ones. */
export const supportedProtocolVersions: readonly number[] = [7, 6, 5, 4, 3, 2, 1];

/**
 * Returns the newest version that both sides support.
 * @returns null if there is none
 */
export function negotiateVersion(offered: readonly number[]): number | null {
  const both = offered.filter((version) => supportedProtocolVersions.includes(version));
  return both.length === 0 ? null : Math.max(...both);
}
