/**
 * Protocol versions, newest first.
 *
 * 1 — hello with a signature over the TLS exporter; operations apply, plan, drift; reports acknowledged by sequence number.
 *     An end of a plan may say what it comes to (`plan_digest`), and an apply may be bound to that.
 * 2 — what programs print while they run (`output_progress`, answered by `output_taken`). An apply may say what must hold
 *     after it (`verify`). The agent's clock in the hello and with changed attributes (`clock_ms`).
 * 3 — terminals (`terminal_*`, and binary frames for what they show and what is typed). An answer to samples that could
 *     not be stored (`metrics_refused`).
 * 4 — an agent's key can be changed: a new one is shown in the hello with what the old one says of it (`key_statement`); the
 *     welcome names the agent (`node_id`). A key that is good no more, or that is not taken, is refused as such (`key_replaced`,
 *     `key_refused`).
 * 5 — the hello may show how the former keys came in the place of each other (`earlier_statements`), for an orchestrator
 *     that was restored from a backup. A key whose former ones are all unknown is refused as such (`key_unknown`).
 * 6 — a resource of an operation may have a condition that the machine decides (`only_if`).
 *
 * Every message has a strict schema, so neither end sends what the other's version does not know: the agent knows that
 * from the challenge and the welcome.
 */
export const protocolVersion = 6;

/** What this build speaks: its own version and no fewer than the two before. */
export const supportedProtocolVersions: readonly number[] = [6, 5, 4, 3, 2, 1];

/**
 * Picks the newest version both sides speak.
 * @returns null when there is none
 */
export function negotiateVersion(offered: readonly number[], supported = supportedProtocolVersions): number | null {
  const both = offered.filter((version) => supported.includes(version));
  return both.length === 0 ? null : Math.max(...both);
}
