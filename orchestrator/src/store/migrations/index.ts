import { tokensOfRemoved } from './0015-tokens-of-removed.ts';
import { appliedState } from './0016-applied-state.ts';
import { agentUsage } from './0017-agent-usage.ts';
import { boundSessions } from './0018-bound-sessions.ts';
import { notifiedLimits } from './0019-notified-limits.ts';
import { adjacentAgents } from './0020-adjacent-agents.ts';
import { channelHealth } from './0021-channel-health.ts';
import { consoleSessions } from './0022-console-sessions.ts';
import { runOutcomes } from './0023-run-outcomes.ts';
import { assignmentPrecedence } from './0024-assignment-precedence.ts';
import { moduleRequires } from './0025-module-requires.ts';
import { moduleFiles } from './0026-module-files.ts';
import { compatibleFrom } from './0027-compatible-from.ts';
import { replicas } from './0028-replicas.ts';
import { linkIncarnations } from './0029-link-incarnations.ts';
import { signInAndTicketRows } from './0030-sign-in-and-ticket-rows.ts';
import { appliedModules } from './0031-applied-modules.ts';
import { terminalChunks } from './0032-terminal-chunks.ts';
import { replicasDraining } from './0033-replicas-draining.ts';
import { linksOfReplicas } from './0034-links-of-replicas.ts';
import { replicaStatus } from './0035-replica-status.ts';
import { runsByKind } from './0036-runs-by-kind.ts';
import type { Migration } from './migration.ts';
import { foundation } from './release-0.1/0001-foundation.ts';
import { auditChain } from './release-0.1/0002-audit-chain.ts';
import { secrets } from './release-0.1/0003-secrets.ts';
import { windows } from './release-0.1/0004-windows.ts';
import { notifications } from './release-0.1/0005-notifications.ts';
import { fanOut } from './release-0.1/0006-fan-out.ts';
import { terminals } from './release-0.1/0007-terminals.ts';
import { presence } from './release-0.1/0008-presence.ts';
import { formerSecrets } from './release-0.1/0009-former-secrets.ts';
import { eventHistory } from './release-0.1/0010-event-history.ts';
import { drift } from './release-0.1/0011-drift.ts';
import { transcripts } from './release-0.1/0012-transcripts.ts';
import { standing } from './release-0.1/0013-standing.ts';
import { agentKeys } from './release-0.1/0014-agent-keys.ts';

/** Every migration, oldest first. */
export const migrations: readonly Migration[] = [
  foundation,
  auditChain,
  secrets,
  windows,
  notifications,
  fanOut,
  terminals,
  presence,
  formerSecrets,
  eventHistory,
  drift,
  transcripts,
  standing,
  agentKeys,
  tokensOfRemoved,
  appliedState,
  agentUsage,
  boundSessions,
  notifiedLimits,
  adjacentAgents,
  channelHealth,
  consoleSessions,
  runOutcomes,
  assignmentPrecedence,
  moduleRequires,
  moduleFiles,
  compatibleFrom,
  replicas,
  linkIncarnations,
  signInAndTicketRows,
  appliedModules,
  terminalChunks,
  replicasDraining,
  linksOfReplicas,
  replicaStatus,
  runsByKind,
];
