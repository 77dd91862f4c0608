import { type Finding, findingsOf, judgePlace, type Place } from './finding.ts';

/** What was found on the side of the operator, without asking anybody. */
export interface HereFacts {
  uid: number;
  places: readonly Place[];
  /** What is wrong with the profiles or with what was typed; null: they can be read. */
  configuration: { message: string; remedy: string | null } | null;
  key:
    | { path: string; publicKey: string; kept: 'plain' | 'sealed' | 'agent' }
    | { path: string | null; message: string; remedy: string | null };
  /** Variables that are set and change how connections are made. */
  variables: readonly string[];
}

const { ok, warning, problem } = findingsOf('here');

const kept = { plain: 'in the file as it is', sealed: 'under a passphrase', agent: 'in ssh-agent' };

/** What is to be said of this side. */
export function judgeHere({ uid, places, configuration, key, variables }: HereFacts): Finding[] {
  const findings: Finding[] = [];
  findings.push(
    configuration === null
      ? ok('configuration', 'the profiles and what was typed can be read')
      : problem('configuration', configuration.message, 'No verb can tell where to go.', configuration.remedy),
  );
  findings.push(
    'publicKey' in key
      ? ok('operator_key', `${key.path} is the key ${key.publicKey}, ${kept[key.kept]}`)
      : problem('operator_key', key.message, 'Without a key nobody is signed in.', key.remedy),
  );
  findings.push(...places.flatMap((place) => judgePlace('here', place, uid) ?? []));
  if (variables.includes('NODE_TLS_REJECT_UNAUTHORIZED'))
    findings.push(
      warning(
        'tls_variable',
        'NODE_TLS_REJECT_UNAUTHORIZED is set',
        'Other programs of this shell then believe any certificate; muster goes by what it trusts all the same.',
        'unset NODE_TLS_REJECT_UNAUTHORIZED',
      ),
    );
  if (variables.includes('MUSTER_INSECURE_SKIP_VERIFY'))
    findings.push(
      warning(
        'certificate_unchecked',
        'MUSTER_INSECURE_SKIP_VERIFY is set',
        'Whoever stands between you and the orchestrator can read the session token.',
        'unset MUSTER_INSECURE_SKIP_VERIFY, and trust the certificate: muster login --fingerprint …',
      ),
    );
  return findings;
}
