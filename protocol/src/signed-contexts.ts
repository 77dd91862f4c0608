/**
 * The context string of each signature: it stands before the bytes that a key signs, so that no signature can pass for
 * another kind. docs/security.md lists them with what each binds and who verifies it; a test holds the two together.
 * Changing one changes what is signed: the other end has to accept the former one for two releases (docs/decisions/0023).
 */
export const signedContexts = {
  signIn: 'muster sign-in 2\n',
  agentHello: 'muster agent hello v1\0',
  agentKey: 'muster agent key v1\0',
  discovery: 'muster discovery v1\0',
  planDigestKey: 'muster key of plan digests v1\0',
} as const;
