import { lockDirectory } from '../../../lib/src/instance-lock.ts';
import { loadAgentIdentity } from './identity.ts';
import { type ConnectOrder, chooseTarget, OrchestratorFile } from './pin.ts';

/**
 * Saves this machine's orchestrator for the agent's next start.
 * @returns the agent's node ID
 * @throws DirectoryInUse if an agent is using the directory, because the agent would overwrite the file
 */
export async function saveTarget(dataDir: string, order: ConnectOrder): Promise<string> {
  const identity = await loadAgentIdentity(dataDir);
  const unlock = await lockDirectory(dataDir, 'agent');
  try {
    const file = new OrchestratorFile(dataDir);
    const target = chooseTarget(file.read(), order);
    if (target !== null) file.write(target);
  } finally {
    unlock();
  }
  return identity.nodeId;
}
