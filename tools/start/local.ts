import type { Agent } from '@muster/protocol/http';
import { CliFailure, runMuster } from '../suite/cli.ts';
import { type KnownProfile, profileFor } from './names.ts';

/** Sends requests from `npm start` to its orchestrator, with the `muster` command. */

/** The environment without variables that select another orchestrator. */
const withoutTarget = { ...process.env };
for (const name of ['MUSTER_URL', 'MUSTER_PROFILE', 'MUSTER_FINGERPRINT', 'MUSTER_INSECURE_SKIP_VERIFY'])
  delete withoutTarget[name];

/**
 * Returns the path of the user's operator key, and creates the key if there is none. Passes an explicit address, so
 * that the key does not depend on a profile.
 */
export async function operatorKey(): Promise<{ publicKey: string; made: string | null }> {
  const address = ['--url', 'https://127.0.0.1:4748'];
  try {
    const { public_key } = (await runMuster(['operator', 'whoami', '--public-key', ...address])) as {
      public_key: string;
    };
    return { publicKey: public_key, made: null };
  } catch (error) {
    if (!(error instanceof CliFailure) || error.code !== 'key_missing') throw error;
    const { public_key, key_file } = (await runMuster(['operator', 'init', ...address])) as {
      public_key: string;
      key_file: string;
    };
    return { publicKey: public_key, made: key_file };
  }
}

/**
 * Stores a profile for this orchestrator and its certificate.
 * @param fingerprint the certificate's fingerprint; null if the certificate is not self-signed
 * @returns the profile, and the suffix for commands, which is empty if the profile is the current one
 */
export async function nameProfile(
  url: string,
  fingerprint: string | null,
): Promise<{ profile: string; suffix: string }> {
  const { MUSTER_KEY_FILE: keyFile } = process.env;
  const options = [
    ...(fingerprint === null ? [] : ['--fingerprint', fingerprint]),
    ...(keyFile ? ['--key-file', keyFile] : []),
  ];
  const known = async () => (await runMuster(['profile', 'list'], withoutTarget)) as KnownProfile[];
  const profile = profileFor(await known(), url, fingerprint);
  await runMuster(['profile', 'create', profile, '--url', url, '--replace', ...options], withoutTarget);
  const inUse = (await known()).some(({ name, current }) => name === profile && current);
  return { profile, suffix: inUse ? '' : ` --profile ${profile}` };
}

/**
 * Runs a command with a profile.
 * @throws CliFailure with the remedy if the orchestrator does not know the current key
 */
async function as(profile: string, args: string[]): Promise<unknown> {
  try {
    return await runMuster([...args, '--profile', profile], withoutTarget);
  } catch (error) {
    if (!(error instanceof CliFailure) || error.code !== 'operator_unknown') throw error;
    throw new CliFailure(
      'Your operator key is not known here: this data directory was first started with another key.\n' +
        'Set MUSTER_KEY_FILE to the path of that key, or start with a new data directory: npm start -- --data-dir DIR',
      error.code,
    );
  }
}

/**
 * Creates a token that enrolls this machine's agent without manual approval. Appends a number to the name if another
 * agent has it.
 */
export async function enrolmentToken(profile: string, name: string): Promise<string> {
  for (let number = 1; ; number++) {
    const attempt = number === 1 ? name : `${name.slice(0, 60)}-${number}`;
    try {
      return ((await as(profile, ['agents', 'enroll', '--name', attempt])) as { token: string }).token;
    } catch (error) {
      if (!(error instanceof CliFailure) || error.code !== 'name_taken' || number === 99) throw error;
    }
  }
}

/** Returns this machine's agent record. Approves the agent if it is pending. */
export async function approvedAgent(profile: string, nodeId: string, name: string): Promise<Agent> {
  const agents = (await as(profile, ['agents', 'list'])) as Agent[];
  const agent = agents.find(({ node_id }) => node_id === nodeId);
  if (!agent) throw new Error(`The orchestrator does not list the agent ${nodeId}. Run npm start again.`);
  if (agent.status !== 'pending') return agent;
  return (await as(profile, ['agents', 'approve', nodeId, '--name', name])) as Agent;
}
