import t from 'tap'
import { bareWords, readKeyword } from '../../src/sms/keywords.ts'

const STOPS = [
  ...['STAAK', 'HOU OP', 'KANSELLEER', 'TEKEN UIT'],
  ...['YEKA', 'MISA', 'YIMA', 'KHANSELA', 'RHOXISA'],
  ...['EMA', 'EMISA', 'KGAOTSA', 'TLOHELA'],
  ...['STOP', 'STOPALL', 'STOP ALL', 'UNSUBSCRIBE', 'CANCEL', 'END', 'QUIT', 'OPT OUT', 'OPTOUT'],
  'OPT-OUT',
]
const STARTS = ['START', 'UNSTOP', 'SUBSCRIBE']

const forms: Record<string, (word: string) => string> = {
  'as it is': (word) => word,
  'in lower case': (word) => word.toLowerCase(),
  'in mixed case': (word) => word[0] + word.slice(1).toLowerCase(),
  'with blanks around': (word) => ` \t${word}\r\n `,
  'with unusual blanks': (word) => `\u00a0${word.replace(' ', '\u2009 ')}\u200b`,
  'with punctuation': (word) => `${word}!!!`,
  'in quotes': (word) => `"${word}".`,
  'in curly quotes': (word) => `“${word}”`,
  'in brackets': (word) => `(${word})`,
  'with a smiley': (word) => `${word} 🛑`,
  'in full width': (word) =>
    word.replace(/[A-Z]/g, (letter) => String.fromCodePoint(letter.charCodeAt(0) + 0xfee0)),
}

for (const [name, form] of Object.entries(forms)) {
  t.test(`readKeyword(): reads keywords ${name}`, async (t) => {
    for (const word of STOPS) t.equal(readKeyword(form(word)), 'stop', form(word))
    for (const word of STARTS) t.equal(readKeyword(form(word)), 'start', form(word))
  })
}

t.test('readKeyword(): a keyword with other text is null', async (t) => {
  for (const body of [
    'please stop calling me at the bus stop',
    'STOP it',
    "Don't stop",
    'stopped',
    'nonstop',
    'The end',
    'END 2024',
    'STOP 7',
    'quit smoking',
    'cancel my order 55',
    'opt',
    'out',
    'opt in',
    'start when?',
    'hou op soek',
    'ngiyeka',
    'Misa Dlamini',
    'emang',
    'restart',
    'S T O P',
    '',
    '   ',
    '!?',
    '\u0000',
    'да',
    '停止',
  ]) {
    t.equal(readKeyword(body), null, JSON.stringify(body))
  }
})

t.test('readKeyword(): names of object properties are null', async (t) => {
  for (const body of ['constructor', '__proto__', 'toString']) t.equal(readKeyword(body), null)
})

t.test('bareWords(): returns the words in capitals', async (t) => {
  t.equal(bareWords(' "opt-out!" '), 'OPT OUT')
  t.equal(bareWords('Stop.'), 'STOP')
  t.equal(bareWords('\ufeffST\u200bO\u00adP\u200e'), 'STOP', 'with what nobody sees')
})
