import { expect, test } from 'vitest';
import { isVerifierOf, scramVerifier } from './scram.ts';

// The example in RFC 7677, whose password is "pencil".
const stored =
  'SCRAM-SHA-256$4096:W22ZaJ0SNY7soEsUEjb6gQ==$WG5d8oPm3OtcPnkdi4Uo7BkeZkBFzpcXkuLmtbsT4qY=:wfPLwcE6nTWhTAmQ7tl2KeoiWGPlZqQxSrmfPwDl2dU=';

test('computes the verifier of the example', () => {
  expect(scramVerifier('pencil', Buffer.from('W22ZaJ0SNY7soEsUEjb6gQ==', 'base64'))).toBe(stored);
  expect(isVerifierOf('pencil', stored)).toBe(true);
});

test('rejects verifiers of other passwords, in other formats, or with too many iterations to check quickly', () => {
  expect(isVerifierOf('Pencil', stored)).toBe(false);
  expect(isVerifierOf('pencil', null)).toBe(false);
  expect(isVerifierOf('pencil', 'md5e8a48653851e28c69d0506508fb27fc5')).toBe(false);
  expect(isVerifierOf('pencil', stored.replace('4096', '0'))).toBe(false);
  expect(isVerifierOf('pencil', stored.replace('4096', '9999999'))).toBe(false);
});
