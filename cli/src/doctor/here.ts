import { type Finding, findingsOf, judgePermissions, type PathFacts } from './finding.ts';

/** Facts about the operator's machine, collected without any request. */
export interface HereFacts {
  uid: number;
  pathFacts: readonly PathFacts[];
  /** The error in the profiles or on the command line; null if there is none. */
  configuration: { message: string; remedy: string | null } | null;
  key:
    | { path: string; publicKey: string; storage: 'plain' | 'sealed' | 'agent' }
    | { path: string | null; message: string; remedy: string | null };
  /** Names of environment variables that are set and change how the program connects. */
  variables: readonly string[];
}

const { ok, warning, problem } = findingsOf('here');

const storageText = { plain: 'unencrypted in the file', sealed: 'encrypted with a passphrase', agent: 'in ssh-agent' };

export function judgeHere({ uid, pathFacts, configuration, key, variables }: HereFacts): Finding[] {
  const findings: Finding[] = [];
  findings.push(
    configuration === null
      ? ok('configuration', 'the profiles and the command line are valid')
      : problem(
          'configuration',
          configuration.message,
          'No command can find the orchestrator.',
          configuration.remedy ?? 'Check the profiles: muster profile list',
        ),
  );
  findings.push(
    'publicKey' in key
      ? ok('operator_key', `${key.path} contains the key ${key.publicKey}, ${storageText[key.storage]}`)
      : problem(
          'operator_key',
          key.message,
          'Without a key you cannot sign in.',
          key.remedy ?? 'Create a key: muster operator init',
        ),
  );
  findings.push(...pathFacts.flatMap((each) => judgePermissions('here', each, uid) ?? []));
  if (variables.includes('NODE_TLS_REJECT_UNAUTHORIZED'))
    findings.push(
      warning(
        'tls_variable',
        'NODE_TLS_REJECT_UNAUTHORIZED is set',
        'Other programs of this shell then accept any certificate; muster ignores the variable.',
        'unset NODE_TLS_REJECT_UNAUTHORIZED',
      ),
    );
  if (variables.includes('MUSTER_INSECURE_SKIP_VERIFY'))
    findings.push(
      warning(
        'certificate_unchecked',
        'MUSTER_INSECURE_SKIP_VERIFY is set',
        'Anyone between you and the orchestrator can read the session token.',
        'unset MUSTER_INSECURE_SKIP_VERIFY, and trust the certificate: muster login --fingerprint …',
      ),
    );
  return findings;
}
