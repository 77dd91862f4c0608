import type { Client } from '@muster/protocol/client';
import { applyAssignment, createAssignment, type Run, uploadModule } from '@muster/protocol/http';

const name = 'bench';

/** Assigns a module `bench` with `count` files to the agents with the tag `bench=yes`. */
export async function assignFiles(call: Client, count: number, fileContent = 'x'): Promise<void> {
  const resources = Array.from({ length: count }, (_, n) => ({
    id: `f${n}`,
    resource: { 'file-unix': { path: `/srv/bench/${n}`, content: fileContent, mode: '0644' } },
  }));
  const content = JSON.stringify({ name, supports: [{ platform: 'linux' }], resources });
  await call(uploadModule, { body: { name, content } });
  await call(createAssignment, { body: { name, modules: [name], selector: 'bench=yes' } });
}

/** Applies the files on all assigned agents. */
export const applyAssignedFiles = async (call: Client): Promise<Run> =>
  (await call(applyAssignment, { params: { name } })) as Run;
