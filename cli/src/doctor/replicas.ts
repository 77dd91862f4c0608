import type { AnswerOf, getHealth, Replica } from '@muster/protocol/http';
import { sanitiseLine } from '../text/sanitize.ts';
import { type Finding, findingsOf, orchestratorLog } from './finding.ts';

export interface ReplicaFacts {
  /** The orchestrators that share the database; empty without `replica.name`. */
  readonly replicas: readonly Replica[];
  /** State of the NATS connection of the replica that answered; null without NATS. */
  readonly bus: AnswerOf<typeof getHealth>['bus'];
}

const { ok, warning, problem } = findingsOf('orchestrator');

/** Seconds without a heartbeat after which a replica is not ready. */
const lateSecs = 6;

const named = (replicas: readonly Replica[]): string => sanitiseLine(replicas.map(({ name }) => name).join(', '));

/** Diagnoses the replicas of a fleet. */
export function judgeReplicas({ replicas, bus }: ReplicaFacts): Finding[] {
  if (replicas.length === 0) return [];
  const drained = replicas.filter(({ draining }) => draining);
  const unready = replicas.filter(
    ({ draining, ready, heartbeat_age_secs }) => !draining && (!ready || heartbeat_age_secs >= lateSecs),
  );
  const readyCount = replicas.length - drained.length - unready.length;
  const findings: Finding[] = [];
  if (unready.length > 0)
    findings.push(
      problem(
        'replicas_ready',
        `not ready: ${named(unready)}`,
        'The balancer sends them no agents and operators.',
        `On their machines, see why: ${orchestratorLog}`,
      ),
    );
  if (drained.length > 0)
    findings.push(
      warning(
        'replicas_drained',
        `drained or stopping: ${named(drained)}`,
        'They have no agents and no work.',
        `muster replicas undrain ${sanitiseLine(drained[0]!.name)}`,
      ),
    );
  if (readyCount < 2)
    findings.push(
      warning(
        'replicas_spare',
        readyCount === 1 ? 'only one replica is ready' : 'no replica is ready',
        'No other replica takes over if it is lost.',
        'Start or undrain another one: muster replicas list',
      ),
    );
  findings.push(...differing(replicas), ...judgeBus(bus));
  if (findings.length === 0) findings.push(ok('replicas', `${replicas.length} replicas, all ready and alike`));
  return findings;
}

function differing(replicas: readonly Replica[]): Finding[] {
  const versions = new Map(replicas.map(({ name, version }) => [name, version]));
  if (new Set(versions.values()).size > 1)
    return [
      warning(
        'replicas_version',
        `the replicas have different releases: ${sanitiseLine([...versions].map(([name, version]) => `${name} ${version}`).join(', '))}`,
        'This is meant for the time of an upgrade only.',
        'Install the same release on all of them.',
      ),
    ];
  // Other releases may have other settings, so digests are comparable only within a release.
  const digests = new Set(replicas.flatMap(({ config_digest }) => config_digest ?? []));
  if (digests.size > 1)
    return [
      warning(
        'replicas_configuration',
        'the replicas have different configurations',
        'Requests and agents are treated differently, depending on the replica.',
        'Compare CONFIG in muster replicas list, and the output of muster settings show on each replica.',
      ),
    ];
  return [];
}

function judgeBus(bus: ReplicaFacts['bus']): Finding[] {
  if (bus === null || (bus.connected && bus.unheard.length === 0)) return [];
  return [
    warning(
      'replicas_bus',
      bus.connected
        ? `no messages arrive through NATS from ${sanitiseLine(bus.unheard.join(', '))}`
        : 'the replica that answered has no connection to NATS',
      'Changes appear a few seconds late, and terminals open only at the replica of their agent.',
      'Check the NATS server, and the settings nats.* of each replica. The reason is in its log.',
    ),
  ];
}
