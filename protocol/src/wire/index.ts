export * from './agent-message.ts';
export * from './discovery.ts';
export * from './handshake.ts';
export * from './key-statement.ts';
export * from './limits.ts';
export * from './orchestrator-message.ts';
export * from './terminal-frame.ts';
export * from './version.ts';
