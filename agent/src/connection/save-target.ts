import { lockDirectory } from '../../../lib/src/instance-lock.ts';
import { loadAgentIdentity } from './identity.ts';
import { type ConnectOrder, chooseTarget, OrchestratorFile } from './pin.ts';

/**
 * Writes down which orchestrator this machine belongs to, for the agent that is started next.
 * @returns the node id that it will have
 * @throws DirectoryInUse while an agent runs on the directory: it would write over this
 */
export async function remember(dataDir: string, order: ConnectOrder): Promise<string> {
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
