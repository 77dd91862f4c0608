/**
 * The context string of each signature. Each signature covers its context string and then the data, so that no
 * signature is valid for another purpose. docs/security.md lists the strings with the data and the verifier; a test
 * compares the two lists. A change of a string changes the signed bytes: the verifier has to accept the former string
 * for two releases (docs/decisions/0023).
 */
export const signedContexts = {
  signIn: 'muster sign-in 2\n',
  agentHello: 'muster agent hello v1\0',
  agentKey: 'muster agent key v1\0',
  discovery: 'muster discovery v1\0',
  planDigestKey: 'muster key of plan digests v1\0',
} as const;
