/**
 * Protocol versions, newest first.
 *
 * 1 — hello with a signature over the TLS exporter; operations apply, plan, drift; reports acknowledged by sequence number.
 *     The end of a plan may have a digest (`plan_digest`), and an apply may be bound to it.
 * 2 — output of running programs (`output_progress`, answered by `output_taken`). Verifications after an apply (`verify`).
 *     The agent's clock in the hello and with changed attributes (`clock_ms`).
 * 3 — terminals (`terminal_*`, and binary frames for their output and input). An answer to samples that could not be
 *     stored (`metrics_refused`).
 * 4 — key rotation: the hello presents a new key with a statement signed by the old one (`key_statement`); the welcome names
 *     the agent (`node_id`). Refusals of an expired key and of an unacceptable one (`key_replaced`, `key_refused`).
 * 5 — the hello may contain the statements of earlier rotations (`earlier_statements`), for an orchestrator that was restored
 *     from a backup. Refusal of a key whose former keys are all unknown (`key_unknown`).
 * 6 — a resource of an operation may have a condition that the machine decides (`only_if`).
 *
 * Every message has a strict schema, so neither end sends fields that the other's version does not know. The agent learns
 * the version from the challenge and the welcome.
 */
export const protocolVersion = 6;

/** Versions that this build supports: its own version and at least the two before. */
export const supportedProtocolVersions: readonly number[] = [6, 5, 4, 3, 2, 1];

/**
 * Picks the newest version that both sides support.
 * @returns null if there is none
 */
export function negotiateVersion(offered: readonly number[], supported = supportedProtocolVersions): number | null {
  const both = offered.filter((version) => supported.includes(version));
  return both.length === 0 ? null : Math.max(...both);
}
