import type { Agent, Secret } from '@muster/protocol/http';
import { fewNames } from '../execution/choose-agents.ts';
import { sanitiseLine } from '../text/sanitize.ts';
import { counted, duration } from '../text/style.ts';
import { type Fingerprint, showFingerprint, whereToldFingerprint } from '../transport/trust.ts';
import { type Finding, findingsOf, judgeDisk } from './finding.ts';

/** What an orchestrator said to somebody who is not signed in. Times are Unix seconds. */
export interface ReachFacts {
  url: string;
  now: number;
  /** Null: it was reached. */
  unreachable: { message: string; remedy: string | null } | null;
  /** Null: it does not speak TLS. */
  certificate: {
    fingerprint: Fingerprint;
    validFrom: number;
    validTo: number;
    /** An authority that this machine trusts vouches for it. */
    vouched: boolean;
  } | null;
  /** The certificate that was named or trusted before. */
  expected: Fingerprint | null;
  /** By its `Date` header; null: it sends none. */
  serverTime: number | null;
  status: { status: string; version: string; protocol_version: number; reasons: readonly string[] } | null;
  /** HTTP status of `/readyz`; null: no answer. */
  ready: number | null;
  /** Proxy variables that are set. */
  proxies: readonly string[];
  own: { version: string; protocol: number };
}

const { ok, warning, problem } = findingsOf('orchestrator');

const reasons: Readonly<Record<string, [what: string, remedy: string]>> = {
  database: ['its database takes no writes', 'Look at its log and at the disk of its data directory.'],
  secrets_key: ['a key for secrets is missing', 'Put secrets.keys back into its data directory, from the backup.'],
  metrics: [
    'samples of the machines cannot be stored',
    'Its log says why, and what to do with a file that is damaged; agents keep their samples for a day.',
  ],
  disk: ['its disk is nearly full', 'Make room on the disk of its data directory: df -h'],
};

/** Whether the certificate is the one that is trusted: only then anything is sent. */
export function isTrusted({ certificate, expected }: Pick<ReachFacts, 'certificate' | 'expected'>): boolean {
  if (certificate === null) return true;
  return expected === null ? certificate.vouched : certificate.fingerprint === expected;
}

function judgeCertificate({ certificate, expected, url, now }: ReachFacts): Finding[] {
  if (certificate === null)
    return [
      warning(
        'certificate',
        `${url} speaks plain HTTP`,
        'Everybody on the way can read the session token.',
        'Use https://, or put a proxy that speaks TLS in front.',
      ),
    ];
  const shown = showFingerprint(certificate.fingerprint);
  const trust = `muster login --url ${url} --fingerprint ${shown}`;
  const compare = `Compare it with ${whereToldFingerprint}, then: ${trust}`;
  const findings: Finding[] = [];
  if (isTrusted({ certificate, expected }))
    findings.push(ok('certificate', `its certificate is the trusted one: ${shown}`));
  else if (expected === null)
    findings.push(
      problem('certificate', `its certificate is not trusted yet: ${shown}`, 'Every verb is refused.', compare),
    );
  else
    findings.push(
      problem(
        'certificate',
        `its certificate is not the one that was trusted: ${shown}`,
        'It was replaced, or somebody stands in between.',
        compare,
      ),
    );
  const left = certificate.validTo - now;
  const renew = 'Replace it (tls_cert, tls_key in its configuration), then trust the new one.';
  const pinned = 'Browsers and agents’ installation refuse an expired certificate; muster goes by the fingerprint.';
  if (left <= 0) findings.push(problem('certificate_expiry', `it expired ${duration(-left)} ago`, pinned, renew));
  else if (certificate.validFrom > now)
    findings.push(
      problem('certificate_expiry', 'it is not valid yet', 'A clock is wrong, here or there.', 'timedatectl'),
    );
  else if (left < 30 * 86_400)
    findings.push(warning('certificate_expiry', `it expires in ${duration(left)}`, pinned, renew));
  else findings.push(ok('certificate_expiry', `it is valid for ${duration(left)}`));
  return findings;
}

function judgeClock({ serverTime, now }: ReachFacts): Finding[] {
  if (serverTime === null) return [];
  const skew = Math.abs(serverTime - now);
  const told = `the clocks differ by ${duration(skew)}`;
  const why = 'Ages are told wrongly; sessions, tokens and certificates seem too old or too young.';
  const remedy = 'See both: timedatectl. Let them be set by NTP: timedatectl set-ntp true';
  if (skew > 300) return [problem('clock', told, why, remedy)];
  return [skew > 10 ? warning('clock', told, why, remedy) : ok('clock', 'the clocks agree')];
}

/** What is to be said of the way to the orchestrator, and of what it says to everybody. */
export function judgeReach(facts: ReachFacts): Finding[] {
  const { url, unreachable, status, ready, proxies, own } = facts;
  if (unreachable !== null)
    return [
      problem('reachable', unreachable.message, 'Nothing can be done from here.', unreachable.remedy),
      ...(proxies.length === 0
        ? []
        : [
            warning(
              'proxy',
              `${proxies.join(', ')} is set, and muster uses no proxy`,
              'Where only the proxy gets out, the orchestrator cannot be reached from here.',
              'Use a way that needs none: ssh -L 4748:127.0.0.1:4748 HOST, then --url https://127.0.0.1:4748',
            ),
          ]),
    ];
  const findings = [ok('reachable', `${url} answers`), ...judgeCertificate(facts), ...judgeClock(facts)];
  if (ready === 503)
    findings.push(
      problem('ready', `it is not ready (/readyz says ${ready})`, 'It is starting or stopping.', 'Look at its log.'),
    );
  if (status === null) return findings;
  for (const reason of status.reasons) {
    // Whatever it says: `constructor` is no reason of the table.
    const known = Object.hasOwn(reasons, reason) ? reasons[reason] : undefined;
    const [what, remedy] = known ?? [`it says it is degraded: ${sanitiseLine(reason)}`, 'Look at its log.'];
    findings.push(problem('health', what, 'Work is refused, or cannot be recorded.', remedy));
  }
  if (status.status === 'ok') findings.push(ok('health', 'it says it is well'));
  else if (status.reasons.length === 0)
    findings.push(problem('health', 'it says it is degraded', 'Work may be refused.', 'Look at its log.'));
  const versions = `muster ${own.version} here, ${sanitiseLine(status.version)} there`;
  findings.push(
    status.version === own.version
      ? ok('version', versions)
      : warning('version', versions, 'What one knows, the other may not.', 'Install the same version on both.'),
  );
  return findings;
}

/** What somebody who is signed in can see. Null: it could not be asked, or not by this operator. */
export interface FleetFacts {
  now: number;
  version: string | null;
  agents: readonly Agent[];
  secrets: readonly Secret[];
  disk: { size_bytes: number; free_bytes: number; reserve_bytes: number; low: boolean } | null;
  secretsReadable: boolean;
  database: { kind: string; writable: boolean };
  unreadCritical: number;
  /** Sign-ins of the last seven days whose signature named no server, and the operators whose keys they were. */
  bareSignIns: { count: number; usernames: readonly string[] };
  /** Where agents dial, tried from here. */
  channel: { address: string; error: string | null } | null;
  /** Only when asked for. */
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
        'Nothing is done on their machines.',
        'muster agents list --status pending',
      ),
    );
  if (lost.length > 0)
    findings.push(
      fleet.warning(
        'agents_lost',
        `${counted(lost.length, 'agent is', 'agents are')} not connected: ${fewNames(lost)}`,
        'Their machines are not watched, and nothing can be applied on them.',
        'On the machine: muster doctor; systemctl status muster-agent',
      ),
    );
  if (other.length > 0)
    findings.push(
      fleet.warning(
        'agents_version',
        `${counted(other.length, 'agent has', 'agents have')} another version than the orchestrator: ${fewNames(other)}`,
        'What the newer one knows, the older may not.',
        `Install version ${version} of muster-agent there.`,
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
      fleet.problem('secrets_expired', `expired: ${named(expired)}`, 'What uses them is not applied.', remedy),
    );
  if (soon.length > 0)
    findings.push(
      fleet.warning('secrets_expiring', `expire within 14 days: ${named(soon)}`, 'What uses them will fail.', remedy),
    );
  return findings;
}

/** What is to be said of what the orchestrator keeps, and of its agents. */
export function judgeFleet(facts: FleetFacts): Finding[] {
  const { database, secretsReadable, disk, unreadCritical, bareSignIns, channel, audit } = facts;
  const findings: Finding[] = [];
  findings.push(
    database.writable
      ? ok('database', `its database (${database.kind}) takes writes`)
      : problem(
          'database',
          `its database (${database.kind}) takes no writes`,
          'Nothing is recorded.',
          'Look at its log.',
        ),
  );
  if (!secretsReadable)
    findings.push(
      problem(
        'secrets_key',
        'a key for secrets is missing',
        'Those secrets are lost without it.',
        reasons.secrets_key?.[1] ?? null,
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
        ? { ...judged, verdict: 'problem', why: 'What would grow is refused.', remedy: 'Make room on that disk: df -h' }
        : judged.remedy === null
          ? judged
          : { ...judged, remedy: 'Make room on that disk: df -h' },
    );
  }
  if (channel !== null)
    findings.push(
      channel.error === null
        ? ok('channel_port', `agents’ port ${channel.address} answers`)
        : problem(
            'channel_port',
            `agents’ port ${channel.address} does not answer: ${channel.error}`,
            'Agents cannot connect, if it is so for them as well.',
            'Open it in the firewall in front of the orchestrator; see agent_port and advertised_host: muster settings show',
          ),
    );
  findings.push(...judgeAgents(facts), ...judgeSecrets(facts));
  if (unreadCritical > 0)
    findings.push(
      fleet.warning(
        'notifications',
        `${counted(unreadCritical, 'critical notification')} unread`,
        'Something happened that you should know.',
        'muster notifications list --unread',
      ),
    );
  if (bareSignIns.count > 0)
    findings.push(
      fleet.warning(
        'sign_ins_unbound',
        `${counted(bareSignIns.count, 'sign-in')} of the last 7 days named no server: ${sanitiseLine(bareSignIns.usernames.join(', '))}`,
        'A server that relays such a sign-in gets a session here.',
        'Update what signs in with these keys, then set sign_in.require_bound in the configuration of the orchestrator.',
      ),
    );
  if (audit !== null)
    findings.push(
      audit.ok
        ? ok('audit_chain', `the audit log fits its chain, ${counted(audit.verified, 'event')}`)
        : problem(
            'audit_chain',
            `the audit log does not fit its chain: ${audit.fault ?? 'unknown'}`,
            'Somebody or something changed what was recorded.',
            'muster audit verify',
          ),
    );
  return findings;
}
