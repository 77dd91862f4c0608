/**
 * Context strings of signatures. A signature covers its context string before the data, so that the signature is not
 * valid for any other purpose. docs/security.md lists the strings with their data and verifiers, and a test compares
 * the lists. After a string is changed, the verifier must accept the previous string for two releases
 * (docs/decisions/0023).
 */
export const signedContexts = {
  signIn: 'muster sign-in 2\n',
  agentHello: 'muster agent hello v1\0',
  agentKey: 'muster agent key v1\0',
  discovery: 'muster discovery v1\0',
  planDigestKey: 'muster key of plan digests v1\0',
} as const;
