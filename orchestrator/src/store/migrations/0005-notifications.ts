import type { Migration } from './migration.ts';

/** Channels, notifications, and the outbox of their deliveries. */
export const notifications: Migration = { version: 5, name: 'notifications', statements: () => [] };
