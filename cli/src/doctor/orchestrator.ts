import type { Agent, Secret } from '@muster/protocol/http';
import { fewNames } from '../execution/choose-agents.ts';
import { sanitiseLine } from '../text/sanitize.ts';
import { counted, duration } from '../text/style.ts';
import { type Fingerprint, fingerprintSource, showFingerprint } from '../transport/trust.ts';
import { type Finding, findingsOf, judgeDisk, orchestratorLog } from './finding.ts';
import { judgeReplicas, type ReplicaFacts } from './replicas.ts';

/** Facts about an orchestrator that require no sign-in. Times are Unix seconds. */
export interface ReachFacts {
  url: string;
  now: number;
  /** Why there was no response; null if the orchestrator responded. */
  unreachable: { message: string; remedy: string | null } | null;
  /** Null without TLS. */
  certificate: {
    fingerprint: Fingerprint;
    validFrom: number;
    validTo: number;
    /** Whether the certificate is signed by a CA that this machine trusts. */
    vouched: boolean;
  } | null;
  /** The certificate that the operator specified or has trusted; null if there is none. */
  expected: Fingerprint | null;
  /** Whether commands accept any certificate. */
  insecure: boolean;
  /** Time in the `Date` header; null without the header. */
  serverTime: number | null;
  status: { status: string; version: string; protocol_version: number; reasons: readonly string[] } | null;
  /** HTTP status of `/readyz`; null without a response. */
  ready: number | null;
  /** Names of the proxy variables that are set. */
  proxies: readonly string[];
  own: { version: string; protocol: number };
}

const { ok, warning, problem } = findingsOf('orchestrator');

const late = 'The replicas continue, but more slowly, or with fewer of them.';

const reasons: Readonly<Record<string, [what: string, remedy: string, why?: string]>> = {
  database: [
    'the database does not accept writes',
    `Check the disk of its data directory with df -h, and its log: ${orchestratorLog}`,
  ],
  secrets_key: [
    'an encryption key for secrets is missing',
    'Restore secrets.keys to its data directory, from the backup.',
  ],
  metrics: [
    'samples cannot be stored',
    'The log of the orchestrator states the reason, and how to handle a damaged file. Agents keep their samples for a day.',
  ],
  disk: ['the disk is nearly full', 'Free space on the disk of the orchestrator’s data directory: df -h'],
  bus: [
    'messages from other replicas do not arrive through NATS, so changes appear a few seconds late',
    `Check the NATS server, and the settings nats.* of each replica. The reason is in its log: ${orchestratorLog}`,
    late,
  ],
  replica: ['a replica is missing, or has another release or configuration', 'muster replicas list', late],
};

/** Reports whether the certificate is trusted. If it is not, no more requests are sent. */
export function isTrusted({ certificate, expected }: Pick<ReachFacts, 'certificate' | 'expected'>): boolean {
  if (certificate === null) return true;
  return expected === null ? certificate.vouched : certificate.fingerprint === expected;
}

function judgeCertificate({ certificate, expected, insecure, url, now }: ReachFacts): Finding[] {
  if (certificate === null)
    return [
      warning(
        'certificate',
        `${url} uses plain HTTP`,
        'Others on the network can read the session token.',
        'Use https://, or a TLS proxy in front.',
      ),
    ];
  const shown = showFingerprint(certificate.fingerprint);
  const trust = `muster login --url ${url} --fingerprint ${shown}`;
  const compare = `Compare it with ${fingerprintSource}, then: ${trust}`;
  const findings: Finding[] = [];
  if (isTrusted({ certificate, expected })) findings.push(ok('certificate', `the certificate is trusted: ${shown}`));
  else if (insecure)
    findings.push(
      warning(
        'certificate',
        `the certificate is not trusted: ${shown}`,
        'Commands accept it anyway, because of --insecure-skip-verify or MUSTER_INSECURE_SKIP_VERIFY.',
        compare,
      ),
    );
  else if (expected === null)
    findings.push(
      problem('certificate', `the certificate is not trusted yet: ${shown}`, 'Every command fails.', compare),
    );
  else
    findings.push(
      problem(
        'certificate',
        `the certificate is not the trusted one: ${shown}`,
        'It was replaced, or someone intercepts the connection.',
        compare,
      ),
    );
  const left = certificate.validTo - now;
  const renew = 'Replace it (tls_cert and tls_key in the orchestrator’s configuration), then trust the new one.';
  const pinned =
    'Browsers and the installation of agents refuse an expired certificate; muster checks only the fingerprint.';
  if (left <= 0)
    findings.push(problem('certificate_expiry', `the certificate expired ${duration(-left)} ago`, pinned, renew));
  else if (certificate.validFrom > now)
    findings.push(
      problem(
        'certificate_expiry',
        'the certificate is not valid yet',
        'The clock of this machine or of the orchestrator is wrong.',
        'timedatectl',
      ),
    );
  else if (left < 30 * 86_400)
    findings.push(warning('certificate_expiry', `the certificate expires in ${duration(left)}`, pinned, renew));
  else findings.push(ok('certificate_expiry', `the certificate is valid for ${duration(left)}`));
  return findings;
}

function judgeClock({ serverTime, now }: ReachFacts): Finding[] {
  if (serverTime === null) return [];
  const skew = Math.abs(serverTime - now);
  const message = `the clocks differ by ${duration(skew)}`;
  const why = 'Shown ages are wrong; sessions, tokens, and certificates may seem expired or not yet valid.';
  const remedy = 'Compare the clocks with timedatectl. To sync with NTP: timedatectl set-ntp true';
  if (skew > 300) return [problem('clock', message, why, remedy)];
  return [skew > 10 ? warning('clock', message, why, remedy) : ok('clock', 'the clocks agree')];
}

/** Diagnoses the connection to the orchestrator and its public status. */
export function judgeReach(facts: ReachFacts): Finding[] {
  const { url, unreachable, status, ready, proxies, own } = facts;
  if (unreachable !== null)
    return [
      problem(
        'reachable',
        unreachable.message,
        'Every command fails.',
        unreachable.remedy ?? 'Check the address in --url or the profile, and that the orchestrator runs.',
      ),
      ...(proxies.length === 0
        ? []
        : [
            warning(
              'proxy',
              `${proxies.join(', ')} is set, but muster does not use proxies`,
              'If only the proxy has access, the orchestrator is unreachable from here.',
              'Use a tunnel: ssh -L 4748:127.0.0.1:4748 HOST, then --url https://127.0.0.1:4748',
            ),
          ]),
    ];
  const findings = [ok('reachable', `${url} answers`), ...judgeCertificate(facts), ...judgeClock(facts)];
  if (ready === 503)
    findings.push(
      problem(
        'ready',
        `the orchestrator is not ready (/readyz answers ${ready})`,
        'It is starting or stopping.',
        `To see why, run on the orchestrator's machine: ${orchestratorLog}`,
      ),
    );
  if (status === null) return findings;
  for (const reason of status.reasons) {
    // Uses only own properties, because an untrusted reason could be `constructor`.
    const known = Object.hasOwn(reasons, reason) ? reasons[reason] : undefined;
    const [what, remedy, why = 'New work is refused, or cannot be recorded.'] = known ?? [
      `the orchestrator reports that it is degraded: ${sanitiseLine(reason)}`,
      `To see why, run on the orchestrator's machine: ${orchestratorLog}`,
    ];
    findings.push(problem('health', what, why, remedy));
  }
  if (status.status === 'ok') findings.push(ok('health', 'the orchestrator reports that it is healthy'));
  else if (status.reasons.length === 0)
    findings.push(
      problem(
        'health',
        'the orchestrator reports that it is degraded',
        'New work may be refused.',
        `To see why, run on the orchestrator's machine: ${orchestratorLog}`,
      ),
    );
  const versions = `muster ${own.version} here, ${sanitiseLine(status.version)} on the orchestrator`;
  findings.push(
    status.version === own.version
      ? ok('version', versions)
      : warning('version', versions, 'The older version may lack features.', 'Install the same version on both.'),
  );
  return findings;
}

/** Facts that a signed-in operator can request; null if they are not available to this operator. */
export interface FleetFacts extends ReplicaFacts {
  now: number;
  version: string | null;
  agents: readonly Agent[];
  secrets: readonly Secret[];
  disk: { size_bytes: number; free_bytes: number; reserve_bytes: number; low: boolean } | null;
  secretsReadable: boolean;
  database: { kind: string; writable: boolean };
  unreadCritical: number;
  /** Sign-ins of the last seven days whose signatures did not name a server, and their operators. */
  signInsWithoutServer: { count: number; usernames: readonly string[] };
  /** The result of a connection from this machine to the address that agents use. */
  channel: { address: string; error: string | null } | null;
  /** Null unless requested. */
  audit: { ok: boolean; verified: number; fault: string | null } | null;
}

const fleet = findingsOf('fleet');
const day = 86_400;

function judgeAgents({ agents, version }: FleetFacts): Finding[] {
  const pending = agents.filter(({ status }) => status === 'pending');
  const approved = agents.filter(({ status }) => status === 'approved');
  const lost = approved.filter(({ connected }) => !connected);
  const other = version === null ? [] : approved.filter(({ agent_version }) => agent_version !== version);
  const findings: Finding[] = [];
  if (pending.length > 0)
    findings.push(
      fleet.warning(
        'agents_pending',
        `${counted(pending.length, 'agent waits', 'agents wait')} for approval: ${fewNames(pending)}`,
        'Nothing is applied on their machines.',
        'muster agents list --status pending',
      ),
    );
  if (lost.length > 0)
    findings.push(
      fleet.warning(
        'agents_lost',
        `${counted(lost.length, 'agent is', 'agents are')} offline: ${fewNames(lost)}`,
        'Their machines are not monitored, and nothing can be applied there.',
        'On the machine: muster doctor; systemctl status muster-agent',
      ),
    );
  if (other.length > 0)
    findings.push(
      fleet.warning(
        'agents_version',
        `${counted(other.length, 'agent has', 'agents have')} a different version than the orchestrator: ${fewNames(other)}`,
        'The older version may lack features.',
        `Install version ${version} of muster-agent on them.`,
      ),
    );
  if (findings.length === 0) findings.push(fleet.ok('agents', `${counted(approved.length, 'agent')}, all connected`));
  return findings;
}

function judgeSecrets({ secrets, now }: FleetFacts): Finding[] {
  const left = ({ expires_at }: Secret) => (expires_at === null ? Infinity : Date.parse(expires_at) / 1000 - now);
  const named = (some: readonly Secret[]) => sanitiseLine(some.map(({ name }) => name).join(', '));
  const expired = secrets.filter((secret) => left(secret) <= 0);
  const soon = secrets.filter((secret) => left(secret) > 0 && left(secret) < 14 * day);
  const findings: Finding[] = [];
  const first = (expired[0] ?? soon[0])?.name ?? '';
  const remedy = `muster secrets set ${sanitiseLine(first)} --expires 90d`;
  if (expired.length > 0)
    findings.push(
      fleet.problem(
        'secrets_expired',
        `${counted(expired.length, 'secret has expired', 'secrets have expired')}: ${named(expired)}`,
        'Modules that use them are not applied.',
        remedy,
      ),
    );
  if (soon.length > 0)
    findings.push(
      fleet.warning(
        'secrets_expiring',
        `${counted(soon.length, 'secret expires', 'secrets expire')} within 14 days: ${named(soon)}`,
        'Modules that use them will then fail.',
        remedy,
      ),
    );
  return findings;
}

/** Diagnoses the orchestrator's data and its agents. */
export function judgeFleet(facts: FleetFacts): Finding[] {
  const { database, secretsReadable, disk, unreadCritical, signInsWithoutServer, channel, audit } = facts;
  const findings: Finding[] = [];
  findings.push(
    database.writable
      ? ok('database', `the database (${database.kind}) accepts writes`)
      : problem(
          'database',
          `the database (${database.kind}) does not accept writes`,
          'Nothing is recorded.',
          `To see why, run on the orchestrator's machine: ${orchestratorLog}`,
        ),
  );
  if (!secretsReadable)
    findings.push(
      problem(
        'secrets_key',
        'an encryption key for secrets is missing',
        'Secrets that were encrypted with this key cannot be decrypted.',
        'Restore secrets.keys to its data directory, from the backup.',
      ),
    );
  if (disk !== null) {
    const judged = judgeDisk('orchestrator', {
      path: 'its data directory',
      size: disk.size_bytes,
      free: disk.free_bytes,
    });
    findings.push(
      disk.low
        ? { ...judged, verdict: 'problem', why: 'New data is refused.', remedy: 'Free space on that disk: df -h' }
        : judged.remedy === null
          ? judged
          : { ...judged, remedy: 'Free space on that disk: df -h' },
    );
  }
  if (channel !== null)
    findings.push(
      channel.error === null
        ? ok('channel_port', `the port for agents, ${channel.address}, answers`)
        : problem(
            'channel_port',
            `the port for agents, ${channel.address}, does not answer: ${channel.error}`,
            'Agents may be unable to connect.',
            'Open it in the orchestrator’s firewall; for agent_port and advertised_host see muster settings show',
          ),
    );
  findings.push(...judgeReplicas(facts), ...judgeAgents(facts), ...judgeSecrets(facts));
  if (unreadCritical > 0)
    findings.push(
      fleet.warning(
        'notifications',
        `${counted(unreadCritical, 'critical notification')} unread`,
        'They may need your attention.',
        'muster notifications list --unread',
      ),
    );
  if (signInsWithoutServer.count > 0)
    findings.push(
      fleet.warning(
        'sign_ins_unbound',
        `${counted(signInsWithoutServer.count, 'sign-in')} in the last 7 days named no server: ${sanitiseLine(signInsWithoutServer.usernames.join(', '))}`,
        'A malicious server can relay such a sign-in and get a session at this orchestrator.',
        'Update the clients that use these keys, then set sign_in.require_bound in the orchestrator’s configuration.',
      ),
    );
  if (audit !== null)
    findings.push(
      audit.ok
        ? ok('audit_chain', `the chain of the audit log is intact, ${counted(audit.verified, 'event')}`)
        : problem(
            'audit_chain',
            `the chain of the audit log is broken: ${audit.fault ?? 'unknown'}`,
            'Recorded events were changed.',
            'muster audit verify',
          ),
    );
  return findings;
}
