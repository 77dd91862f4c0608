export * from './errors.ts';
export * from './identity.ts';
export * from './metrics.ts';
export * from './operation.ts';
export * from './operation-status.ts';
export * from './public-key.ts';
export * from './ssh-key.ts';
export * from './visible.ts';
