import type { Migration } from './migration.ts';

/** The chain over the audit log, and the leases of work that one process does at a time. */
export const auditChain: Migration = { version: 2, name: 'audit-chain', statements: () => [] };
