import { join } from 'node:path';
import { agentExample } from '@muster/protocol/http';
import type { Database } from '../../../orchestrator/src/store/database.ts';
import { insertAgent } from '../../../orchestrator/src/store/queries/agents/agents.ts';
import { putTag } from '../../../orchestrator/src/store/queries/agents/tags.ts';
import { openSqlite } from '../../../orchestrator/src/store/sqlite/sqlite.ts';
import { statement } from '../../../orchestrator/src/store/transaction.ts';

const perUnit = 500;

/** Adds agents to the database of a stopped orchestrator. The agents are approved and have connected once. */
export async function seedAgents(dataDir: string, count: number): Promise<void> {
  const now = Math.floor(Date.now() / 1000);
  const db = await openSqlite({
    file: join(dataDir, 'muster.db'),
    now: () => now,
    onFatal: (reason) => {
      throw reason;
    },
  });
  await seedAgentsInto(db, count);
  await db.close();
}

/** Writes approved agents that have connected once to an open database. */
export async function seedAgentsInto(db: Database, count: number): Promise<void> {
  const now = Math.floor(Date.now() / 1000);
  const attributes = JSON.stringify(agentExample.attributes);
  for (let first = 0; first < count; first += perUnit) {
    const statements = Array.from({ length: Math.min(perUnit, count - first) }, (_, index) => {
      const id = (first + index).toString(16).padStart(32, '0');
      const name = `seeded-${first + index}`;
      return [
        statement(insertAgent, {
          incarnation: '',
          instance: '',
          node_id: id,
          public_key: id,
          name,
          status: 'approved',
          agent_version: '0.1.0',
          attributes: attributes as never,
          initial_hostname: name,
          initial_ip: '192.0.2.1',
          remote_ip: '192.0.2.1',
          now,
          pin_source: 'flag',
          enrolment_token_id: null,
        }),
        statement(putTag, { node_id: id, key: 'role', value: 'web' }),
      ];
    });
    await db.write({ name: 'bench/agents', statements: statements.flat() });
  }
}
