import t from 'tap'
import { createDatabase, raisedBy, rolledBack, type Tx } from '../fixtures/database.ts'
import { callOps as call, prepareOpsCalls, type Value } from '../fixtures/load.ts'
import { ago } from '../fixtures/webhooks.ts'

const { url, sql } = await createDatabase()
const {
  org,
  domain,
  othersDomain,
  paused,
  suspended,
  testKey,
  testMessage,
  template,
  crowded,
  endpoint,
  othersEndpoint,
  disabled,
  event,
  oldEvent,
  testEvent,
  right,
} = await prepareOpsCalls(url, sql)

const unknownOrg = 'org_01h455vb4pex5vsknk084sn02q'
const unknownMessage = 'em_01h455vb4pex5vsknk084sn02q'
const long = (length: number) => 'x'.repeat(length)

/** Arguments that may be null: a missing body of a template, no note, an unchanged value, all endpoints. */
const nullable = [
  'create_template.3',
  'create_template.4',
  'suppress_globally.1',
  'block_number.1',
  'apply_staged_numbers.1',
  'set_webhook_endpoint.1',
  'set_webhook_endpoint.2',
  'replay_event.1',
  'statement.1',
  'help.0',
  'messages_of.1',
  'export_person.1',
  'change_template.3',
  'change_template.4',
  ...[1, 2, 3, 4, 5, 6].map((place) => `set_plan_terms.${place}`),
]

const noOrganisation = /^there is no organisation /
const noUser = /^there is no user '/
const noTemplate = /^there is no template '/
const noMessage = /^there is no message /
const aName = 'the name must be 1 to 200 characters in one line, not only spaces'
const aPlanId = /^the ID must be 1 to 64 lower-case letters/
const included = 'the price and the allowances must be 0 or more'
const aReason = 'the reason must be 1 to 1000 characters'
const aNote = 'the note must be 1 to 1000 characters'
const tooManyCredits = 'an organisation can have at most 1000000000 credits'
const aSubject = 'the subject must be 1 to 998 characters without line breaks'

const aUrl = 'https://hooks.acme.example/'
const unknownEndpoint = 'we_01h455vb4pex5vsknk084sn02q'
const unknownEvent = 'evt_01h455vb4pex5vsknk084sn02q'
const noEndpoint = /^there is no webhook endpoint /
const noEvent = /^there is no event /
const someTypes =
  /^the event types must be one or more of (email\.\w+, ){5}(sms\.\w+, ){3}sms\.opted_out, each once$/
const notEventTypes = [[], [''], ['email.opened'], ['Email.sent'], ['email.sent', 'email.sent']]
const aPerson = /is neither an email address nor a number in E\.164, such as \+27821234567$/
const aSource = 'the source must be 1 to 1000 characters'
const notPhones = [
  '',
  '27821234567',
  '0821234567',
  '+0821234567',
  '+27 82 123 4567',
  '+2782',
  '+2782123456789012',
  '+27821234567\n',
  '+2782123456x',
  'Acme',
]
const notSenders = [
  '',
  '12345',
  '+0821234567',
  'Twelve chars',
  'Ünited',
  'Acme!',
  'Acme\n',
  '           ',
  'A-B',
]

const wrong: [name: string, values: Value[], message: string | RegExp][] = [
  ...['', 'New', 'a b', '-a', '_a', 'é', long(65), "a'b", 'a\n', 'a\nb'].map(
    (id): [string, Value[], RegExp] => ['create_plan', [id, 'New', 0, 1, 2, 3], aPlanId],
  ),
  ['create_plan', ['new', long(201), 0, 1, 2, 3], aName],
  ['create_plan', ['new', 'New', -1, 1, 2, 3], included],
  ['create_plan', ['new', 'New', 0, -1, 2, 3], included],
  ['create_plan', ['new', 'New', 0, 1, -1, 3], included],
  ['create_plan', ['new', 'New', 0, 1, 2, -2_147_483_648], included],
  ['create_plan', ['new', 'New', 0, 1, 2, 3, -1], included],
  ['create_plan', ['known', 'New', 0, 1, 2, 3], "a plan 'known' already exists"],
  ...['', 'gold', org].map((id): [string, Value[], RegExp] => [
    'set_plan_terms',
    [id, 'New', 0, 1, 2, 3],
    /^there is no plan '/,
  ]),
  ['set_plan_terms', ['known', null, null, null, null, null], /^give at least one of name, /],
  ['set_plan_terms', ['known', long(201), null, null, null, null], aName],
  ...[2, 3, 4, 5, 6].map((place): [string, Value[], string] => [
    'set_plan_terms',
    ['known', null, ...[2, 3, 4, 5, 6].map((at) => (at === place ? -1 : null))],
    included,
  ]),

  ...['', 'acme.example', org, unknownMessage, `x.${domain}`, `${domain}.`].map(
    (name): [string, Value[], RegExp] => ['rotate_dkim', [name], /^there is no domain /],
  ),
  ['rotate_dkim', [othersDomain], /has no next DKIM key yet; try again after its next check$/],

  ['create_organisation', [long(201), 'owner@acme.example', 'starter'], aName],
  ...[
    '',
    'owner',
    'owner@',
    '@acme.example',
    'owner@acme',
    'a b@acme.example',
    'a@b@acme.example',
    'a@acme.example\n',
    `${long(250)}@acme.example`,
  ].map((email): [string, Value[], RegExp] => [
    'create_organisation',
    ['Acme', email, 'starter'],
    /is not an email address$/,
  ]),
  ['rename_organisation', [unknownOrg, 'Acme'], noOrganisation],
  ...['', ' ', 'Acme\nLtd', 'Acme\t', 'Acme\u0085'].flatMap((name): [string, Value[], string][] => [
    ['rename_organisation', [org, name], aName],
    ['create_organisation', [name, 'owner@acme.example', 'starter'], aName],
    ['create_template', [org, name, 'Hello', null, 'Hello'], aName],
    ['set_plan_terms', ['known', name, null, null, null, null], aName],
    ['create_plan', ['new', name, 0, 1, 2, 3], aName],
  ]),
  ['rename_organisation', [org, long(201)], aName],
  ['set_owner_email', [unknownOrg, 'owner@acme.example'], noOrganisation],
  ['set_owner_email', [org, 'owner@'], "'owner@' is not an email address"],
  ['invite', [unknownOrg, 'ann@acme.example', 'member'], noOrganisation],
  ['invite', [org, 'ann@', 'member'], "'ann@' is not an email address"],
  ['invite', [org, 'ann@acme.example', 'admin'], 'the role must be owner, member or viewer'],
  ['remove_member', [unknownOrg, 'ann@acme.example'], noOrganisation],
  ['remove_member', [org, 'nobody@acme.example'], noUser],
  ['make_operator', ['ann@', true], "'ann@' is not an email address"],
  ['create_sign_in_link', ['nobody@acme.example'], noUser],
  ['sign_out', ['nobody@acme.example'], noUser],
  ['create_organisation', ['Acme', "o'brien", 'starter'], "'o''brien' is not an email address"],
  ['create_organisation', ['Acme', 'owner@acme.example', 'gold'], "there is no plan 'gold'"],
  ['create_organisation', ['Acme', 'owner@acme.example', ''], "there is no plan ''"],

  ...[unknownOrg, '', 'Acme', org.toUpperCase(), `${org} `, testMessage.id, org.slice(4)].map(
    (id): [string, Value[], RegExp] => ['create_api_key', [id, 'live', ['read']], noOrganisation],
  ),
  ['create_api_key', [org, 'Live', ['read']], 'the mode must be live or test'],
  ['create_api_key', [org, '', ['read']], 'the mode must be live or test'],
  ...[[], ['everything'], ['read', 'write'], ['read', ''], ['Read']].map(
    (scopes): [string, Value[], string] => [
      'create_api_key',
      [org, 'live', scopes],
      'the scopes must be one or more of emails:send, sms:send, read, domains:write',
    ],
  ),

  ...['', 'sk_live_', 'sk_live_00000000', testKey.slice(0, 15), `${testKey}0`, '%'].map(
    (key): [string, Value[], string] => [
      'revoke_api_key',
      [key],
      'no valid API key matches; it may be revoked already',
    ],
  ),

  ['set_plan', [unknownOrg, 'known'], noOrganisation],
  ['set_plan', [org, 'gold'], "there is no plan 'gold'"],
  ['statement', [unknownOrg, null], noOrganisation],
  ...['2020-01-01', '2100-01-01'].map((time): [string, Value[], RegExp] => [
    'statement',
    [org, time],
    /^no billing period of org_\w+ contains \S+$/,
  ]),

  ['grant_credits', [unknownOrg, 10, 'paid'], noOrganisation],
  ['grant_credits', [org, 0, 'paid'], /^credits must be a number other than 0/],
  ['grant_credits', [org, 10, ''], aNote],
  ['grant_credits', [org, 10, ' '], aNote],
  ['grant_credits', [org, 10, long(1001)], aNote],
  [
    'grant_credits',
    [org, -1, 'a mistake'],
    'the organisation has only 0 credits left to take back',
  ],
  [
    'grant_credits',
    [org, -2_147_483_648, 'a mistake'],
    'the organisation has only 0 credits left to take back',
  ],
  ['grant_credits', [org, 1_000_000_001, 'paid'], tooManyCredits],
  ['grant_credits', [org, 2_147_483_647, 'paid'], tooManyCredits],

  ['pause', [unknownOrg, 'a test'], noOrganisation],
  ['pause', [org, ''], aReason],
  ['pause', [org, long(1001)], aReason],
  ['pause', [paused, 'again'], 'the organisation is already paused'],
  ['resume', [unknownOrg], noOrganisation],
  ['resume', [org], 'the organisation is active, not paused'],
  ['resume', [suspended], 'the organisation is suspended, not paused'],
  ['suspend', [unknownOrg, 'a test'], noOrganisation],
  ['suspend', [org, ''], aReason],
  ['suspend', [org, long(1001)], aReason],
  ['suspend', [suspended, 'again'], 'the organisation is already suspended'],
  ['reinstate', [unknownOrg], noOrganisation],
  ['reinstate', [org], 'the organisation is active, not suspended'],
  ['reinstate', [paused], 'the organisation is paused, not suspended'],

  ...[-1, 0, 27].map((number): [string, Value[], string] => [
    'set_cell',
    [number, 'second'],
    'the number must be from 1 to 26',
  ]),
  ...['', long(101)].map((name): [string, Value[], string] => [
    'set_cell',
    [1, name],
    'the name must have 1 to 100 characters',
  ]),
  ...[-1, 0, 27].flatMap((number): [string, Value[], string][] => [
    ['begin_division', [number, 'second', [org]], 'the number must be from 1 to 26'],
    ['divide', [number, 'the proof'], 'the number must be from 1 to 26'],
  ]),
  ...['', long(101)].map((name): [string, Value[], string] => [
    'begin_division',
    [2, name, [org]],
    'the name must have 1 to 100 characters',
  ]),
  ['begin_division', [2, 'second', []], 'give at least one organisation that moves to the copy'],
  ['begin_division', [2, 'second', [org, unknownOrg]], noOrganisation],
  ['begin_division', [1, 'second', [org]], 'this cell has the number 1; give the copy another one'],
  ['divide', [2, 'the proof'], 'the cell is not being divided'],
  ['end_division', [true], 'the cell is not being divided'],
  ['set_cell', [2, 'second'], 'API keys of cell 1 exist, and a router finds this cell by them'],

  ['verify_domain', [unknownOrg, 'acme.example'], noOrganisation],
  ...[
    '',
    'localhost',
    '.',
    'a..b',
    '.acme.example',
    'acme.example.',
    'a b.example',
    '-a.example',
    'a-.example',
    'mail_a.example',
    'münchen.example',
    'owner@acme.example',
    'https://acme.example',
    `${long(64)}.example`,
    `${'a.'.repeat(130)}example`,
    'acme.example\n',
    '*.acme.example',
  ].map((name): [string, Value[], RegExp] => [
    'verify_domain',
    [org, name],
    /is not a domain name$/,
  ]),
  ['verify_domain', [org, othersDomain], `another organisation has the domain ${othersDomain}`],
  [
    'verify_domain',
    [org, othersDomain.toUpperCase()],
    `another organisation has the domain ${othersDomain}`,
  ],

  ...[null, '', 'nobody.example', org].map((name): [string, Value[], RegExp] => [
    'release_domain',
    [name],
    /^no organisation has the domain /,
  ]),
  ['release_domain', [othersDomain], new RegExp(`^${othersDomain} is verified for org_`)],

  ['create_template', [unknownOrg, 'Hello', 'Hello', null, 'Hello'], noOrganisation],
  ...['', 'Hello', org, 'tpl_', 'tpl_01h455vb4pex5vsknk084sn02q', template.toUpperCase()].flatMap(
    (id): [string, Value[], RegExp][] => [
      ['change_template', [id, 'Hello', 'Hello', null, 'Hello'], noTemplate],
      ['restore_template', [id, 1], noTemplate],
      ['delete_template', [id], noTemplate],
    ],
  ),
  ...[0, 1, -1, 2_147_483_647].map((version): [string, Value[], string] => [
    'restore_template',
    [template, version],
    `the template has no former version ${version}`,
  ]),
  ...(
    [
      [[long(201), 'Hello', null, 'Hello'], aName],
      [['Hello', '', null, 'Hello'], aSubject],
      [['Hello', long(999), null, 'Hello'], aSubject],
      [['Hello', 'Hello\nBcc: all@acme.example', null, 'Hello'], aSubject],
      [['Hello', 'Hello', null, null], 'give html, text or both'],
      [['Hello', 'Hello', '', ''], 'give html, text or both'],
      [
        ['Hello', 'Hello', long(2_097_153), null],
        'html must be at most 2 MB and text at most 1 MB',
      ],
      [
        ['Hello', 'Hello', null, 'é'.repeat(524_289)],
        'html must be at most 2 MB and text at most 1 MB',
      ],
      [
        ['Hello', 'Hello', '{{a}}'.repeat(101), '{{a}}'.repeat(100)],
        'a template must have at most 200 placeholders',
      ],
      [
        ['Hello', `{{${'a'.repeat(65)}}}`, null, 'Hello'],
        'the name of a placeholder must be at most 64 characters',
      ],
    ] as [Value[], string][]
  ).flatMap(([values, message]): [string, Value[], string][] => [
    ['create_template', [org, ...values], message],
    ['change_template', [template, ...values], message],
  ]),

  ['suppress_globally', ['gone', ''], "'gone' is not an email address"],
  [
    'suppress_globally',
    ['gone@acme.example', long(2001)],
    'the note must be at most 2000 characters',
  ],
  [
    'unsuppress_globally',
    ['never@acme.example'],
    "'never@acme.example' is not suppressed globally",
  ],
  ['unsuppress_globally', [''], "'' is not suppressed globally"],

  ...notPhones.flatMap((phone): [string, Value[], RegExp][] =>
    (
      [
        ['record_consent', [org, phone, 'a form']],
        ['withdraw_consent', [org, phone]],
        ['block_number', [phone, '']],
      ] as [string, Value[]][]
    ).map(([name, values]) => [name, values, /is not a number in E\.164, such as \+27821234567$/]),
  ),
  ['record_consent', [unknownOrg, '+27821234567', 'a form'], noOrganisation],
  ['record_consent', [org, '+27821234567', ''], aSource],
  ['record_consent', [org, '+27821234567', long(1001)], aSource],
  ['withdraw_consent', [unknownOrg, '+27821234567'], noOrganisation],
  ...notSenders.flatMap((sender): [string, Value[], RegExp][] =>
    (
      [
        ['approve_sender', [org, sender]],
        ['set_shared_sender', [sender]],
      ] as [string, Value[]][]
    ).map(([name, values]) => [
      name,
      values,
      /is neither a number in E\.164 nor 1 to 11 letters, digits and spaces with at least one letter$/,
    ]),
  ),
  ['approve_sender', [unknownOrg, 'Acme'], noOrganisation],
  ['approve_sender', [org, '+27820000001'], 'another organisation uses +27820000001'],
  [
    'set_shared_sender',
    ['+27820000001'],
    `the organisation ${paused} uses +27820000001; revoke it first`,
  ],
  ['revoke_sender', [unknownOrg, 'Acme'], noOrganisation],
  ['revoke_sender', [org, '+27820000001'], "'+27820000001' is not a sender ID of the organisation"],
  ['revoke_sender', [org, 'acme'], "'acme' is not a sender ID of the organisation"],
  ['revoke_sender', [org, ''], "'' is not a sender ID of the organisation"],
  ...['', 'Interface', 'law', 'statutory '].map((rule): [string, Value[], string] => [
    'set_marketing_hours',
    [rule],
    'the rule must be interface or statutory',
  ]),
  [
    'set_retention',
    ['letters', 30],
    "'letters' has no retention period; give messages, bodies or webhooks",
  ],
  ['set_retention', ['bodies', 0], 'days must be from 1 to 3660'],
  ['set_retention', ['bodies', 401], 'bodies and webhooks cannot be kept for longer than messages'],
  ['set_retention', ['bodies', 3661], 'days must be from 1 to 3660'],
  [
    'set_retention',
    ['messages', 61],
    'messages must be kept for at least 62 days, because an SMS can wait for 30 days',
  ],
  ...[
    '',
    'Jane',
    '@acme.example',
    'jane@acme',
    'a b@acme.example',
    '<jane@acme.example>',
    'mailto:jane@acme.example',
    'jane@acme.example,',
    'jane@acme.example.',
    '0821234567',
    '+2782',
    org,
  ].flatMap((person): [string, Value[], RegExp][] => [
    ['export_person', [person, null], aPerson],
    ['erase_person', [person], aPerson],
  ]),
  ['export_person', ['jané@acme.example', null], /^the address must be in ASCII/],
  ['erase_person', ['jane@münchen.example'], /^the address must be in ASCII/],
  ['export_person', ['jane@acme.example', unknownOrg], noOrganisation],
  ['block_number', ['+27821234567', long(1001)], 'the note must be at most 1000 characters'],
  ['unblock_number', ['+27821234567'], "'+27821234567' is not blocked"],
  ['unblock_number', ['Acme'], "'Acme' is not blocked"],
  ['apply_staged_numbers', [false, long(1001)], 'the note must be at most 1000 characters'],
  ['add_holiday', ['2029-05-30', ''], aName],
  ['add_holiday', ['2029-05-30', long(201)], aName],
  [
    'add_holiday',
    ['3000-01-01', 'Far off'],
    'the day must be from 2000-01-01 to 2999-12-31, such as 2029-05-30',
  ],
  ['remove_holiday', ['2029-12-25'], '2029-12-25 is not a holiday that ops.add_holiday added'],

  ['create_webhook_endpoint', [unknownOrg, aUrl, ['email.sent']], noOrganisation],
  [
    'create_webhook_endpoint',
    [crowded.id, aUrl, ['email.sent']],
    /^the organisation has 20 webhook endpoints, the maximum/,
  ],
  ...notEventTypes.flatMap((types): [string, Value[], RegExp][] => [
    ['create_webhook_endpoint', [org, aUrl, types], someTypes],
    ['set_webhook_endpoint', [endpoint, null, types], someTypes],
  ]),
  ...['', 'hooks.acme.example', 'ftp://hooks.acme.example/', 'javascript:alert(1)'].flatMap(
    (url): [string, Value[], RegExp][] => [
      ['create_webhook_endpoint', [org, url, ['email.sent']], /^the URL /],
      ['set_webhook_endpoint', [endpoint, url, null], /^the URL /],
    ],
  ),
  ['set_webhook_endpoint', [endpoint, null, null], 'give url, event_types or both'],
  ...['', unknownEndpoint, 'we_', org, unknownEndpoint.replace('we_', 'evt_'), '%'].flatMap(
    (id): [string, Value[], RegExp][] =>
      [
        ['set_webhook_endpoint', [id, aUrl, ['email.sent']], noEndpoint],
        ['rotate_webhook_secret', [id], noEndpoint],
        ['disable_webhook_endpoint', [id, 'a test'], noEndpoint],
        ['enable_webhook_endpoint', [id, true], noEndpoint],
        ['delete_webhook_endpoint', [id], noEndpoint],
        ['send_test_event', [id, 'email.sent'], noEndpoint],
        ['replay_event', [event, id], noEndpoint],
        ...(id === org
          ? []
          : [['replay_events', [id, '2026-01-01', '2100-01-01', true], noEndpoint]]),
      ] as [string, Value[], RegExp][],
  ),
  ['disable_webhook_endpoint', [endpoint, ''], aReason],
  ['disable_webhook_endpoint', [endpoint, long(1001)], aReason],
  ['disable_webhook_endpoint', [disabled, 'again'], 'the endpoint is already disabled'],
  ...['', 'email', 'email.opened', 'Email.sent', '{email.sent}'].map(
    (type): [string, Value[], RegExp] => ['send_test_event', [endpoint, type], someTypes],
  ),
  ...(
    [
      ['send_test_event', [disabled, 'email.sent']],
      ['replay_event', [event, disabled]],
      ['replay_events', [disabled, '2026-01-01', '2100-01-01', true]],
    ] as [string, Value[]][]
  ).map(([name, values]): [string, Value[], string] => [
    name,
    values,
    `the endpoint ${disabled} is disabled; enable it with select ops.enable_webhook_endpoint('${disabled}')`,
  ]),
  ...['', unknownEvent, 'evt_', org, endpoint, '%'].map((id): [string, Value[], RegExp] => [
    'replay_event',
    [id, endpoint],
    noEvent,
  ]),
  ['help', ['quark'], "no function or view of ops matches 'quark'"],
  ['example', ['quark'], "ops has no function or view 'quark'"],
  ['why', [unknownEvent], noEvent],
  [
    'replay_event',
    [oldEvent, null],
    /^the event occurred at .*; events can be replayed for 30 days$/,
  ],
  ['replay_event', [testEvent, null], /^the event is a test event and cannot be replayed/],
  [
    'replay_event',
    [event, othersEndpoint],
    'the endpoint belongs to another organisation than the event',
  ],
  ['replay_events', [unknownOrg, '2026-01-01', '2100-01-01', true], noOrganisation],
  ...[
    ['2026-01-02', '2026-01-01'],
    ['2026-01-01', '2026-01-01'],
    ['2100-01-01', '2000-01-01'],
  ].map(([since = '', until = '']): [string, Value[], string] => [
    'replay_events',
    [endpoint, since, until, true],
    'since must be before until',
  ]),
  [
    'replay_events',
    [endpoint, '2000-01-01', ago(31).toISOString(), true],
    'events can be replayed for 30 days; until is earlier than that',
  ],

  ...['why', 'retry_message'].flatMap((name) =>
    ['', unknownMessage, 'em_', org, testMessage.id.replace('em_', 'sm_'), '%'].map(
      (id): [string, Value[], RegExp] => [name, [id], noMessage],
    ),
  ),
  ['retry_message', [testMessage.id], 'a test message is never sent to a provider'],
  ...['', unknownMessage, 'em_', 'sm_', testMessage.id.replace('em_', 'sm_')].map(
    (id): [string, Value[], RegExp] => ['timeline', [id], noMessage],
  ),
  ...[unknownMessage, 'em_', 'em_%', testMessage.id.replace('em_', 'sm_')].map(
    (id): [string, Value[], RegExp] => ['messages_of', [id, null, 10], noMessage],
  ),
  ...[unknownOrg, 'org_', org.toUpperCase().replace('ORG', 'org')].map(
    (id): [string, Value[], RegExp] => ['messages_of', [id, null, 10], noOrganisation],
  ),
  ...['', 'Acme', '%', endpoint, long(300)].map((whose): [string, Value[], RegExp] => [
    'messages_of',
    [whose, null, 10],
    noOrganisation,
  ]),
  ...['@', '0821234567'].flatMap((whose): [string, Value[], RegExp][] => [
    ['messages_of', [whose, null, 10], aPerson],
    ['why', [whose], aPerson],
    ['timeline', [whose], aPerson],
    ['retry_message', [whose], aPerson],
  ]),
  ...[0, -1, 10_001].map((atMost): [string, Value[], string] => [
    'messages_of',
    [org, null, atMost],
    'at_most must be a number from 1 to 10000',
  ]),
]

/** Matches a sentence that Postgram wrote, not one of Postgres about a constraint or a type. */
const sentence = /^([^\n']|'(?:[^']|'')*'){10,200}$/
const ofPostgres =
  /violates|constraint|null value|relation|column|invalid input|syntax|duplicate key/

async function fingerprint(tx: Tx) {
  const tables = await tx<{ name: string }[]>`
    select c.oid::regclass::text as name from pg_class c
    where c.relnamespace in ('app'::regnamespace, 'ops'::regnamespace, 'graphile_worker'::regnamespace)
      and c.relkind in ('r', 'p')
      and not c.relispartition and c.relname not in ('processes', 'request_counts')
    order by 1`
  const parts = tables.map(
    ({ name }) =>
      `select '${name}' as name, count(*), md5(string_agg(t::text, ' ' order by t::text)) from ${name} t`,
  )
  // Sorted, because parallel workers return rows in any order.
  return tx.unsafe(`${parts.join(' union all ')} order by 1`)
}

t.test('wrong arguments: every function of ops with arguments is tested', async (t) => {
  const functions = await sql<{ name: string; count: number }[]>`
    select proname as name, pronargs::integer as count from pg_proc
    where pronamespace = 'ops'::regnamespace and pronargs > 0 order by 1`
  const takers = Object.keys(right).filter((name) => right[name]?.length)
  t.same(
    functions.map(({ name }) => name),
    takers.sort(),
  )
  for (const { name, count } of functions) t.equal(right[name]?.length, count, name)
  t.same([...new Set(wrong.map(([name]) => name))].sort(), takers)
})

t.test('wrong arguments: each raises one clear sentence and changes nothing', async (t) => {
  await rolledBack(sql, async (tx) => {
    const before = await fingerprint(tx)
    for (const [name, values, message] of wrong) {
      const label = `${name}(${values.map((value) => JSON.stringify(value)?.slice(0, 40)).join(', ')})`
      const error = await raisedBy(tx, (inner) => call(inner, name, values))
      t.equal(error.code, 'P0001', label)
      t.match(error.message, message, label)
      t.match(error.message, sentence, label)
      t.notMatch(error.message, ofPostgres, label)
    }
    t.same(await fingerprint(tx), before)
  })
})

t.test('wrong arguments: a null without meaning raises one clear sentence', async (t) => {
  await rolledBack(sql, async (tx) => {
    for (const [name, values] of Object.entries(right)) {
      for (const place of values.keys()) {
        const given = values.map((value, at) => (at === place ? null : value))
        const label = `${name}.${place}`
        if (nullable.includes(label)) {
          await tx.savepoint((inner) => call(inner, name, given))
          continue
        }
        const error = await raisedBy(tx, (inner) => call(inner, name, given))
        t.equal(error.code, 'P0001', `${label}: ${error.message}`)
        t.match(error.message, sentence, label)
        t.notMatch(error.message, ofPostgres, label)
      }
    }
  })
})

t.test('wrong arguments: the hint for a wrong state is a statement that ends it', async (t) => {
  await rolledBack(sql, async (tx) => {
    for (const [name, values] of [
      ['pause', [paused, 'again']],
      ['reinstate', [paused]],
      ['suspend', [suspended, 'again']],
      ['resume', [suspended]],
    ] as [string, Value[]][]) {
      await tx
        .savepoint(async (inner) => {
          const { hint } = await raisedBy(inner, (deeper) => call(deeper, name, values))
          const query = /^select ops\.(resume|reinstate)\('org_\w+'\)/.exec(String(hint))?.[0]
          t.ok(query, `${name}: ${hint}`)
          await inner.unsafe(`${query}`)
          const [row] =
            await inner`select state from ops.organisations where id = ${values[0] as string}`
          t.equal(row?.state, 'active', name)
          throw new Error('undo')
        })
        .catch((error) => t.equal(error.message, 'undo'))
    }
  })
})

t.test('wrong arguments: the hint for a missing object is a query', async (t) => {
  await rolledBack(sql, async (tx) => {
    for (const [name, values] of [
      ['pause', [unknownOrg, 'a test']],
      ['reinstate', [org]],
      ['set_plan', [org, 'gold']],
      ['revoke_api_key', ['sk_live_0']],
      ['why', [unknownMessage]],
      ['why', [unknownEvent]],
      ['rotate_webhook_secret', [unknownEndpoint]],
      ['create_webhook_endpoint', [crowded.id, aUrl, ['email.sent']]],
      ['disable_webhook_endpoint', [disabled, 'again']],
      ['replay_event', [event, othersEndpoint]],
    ] as [string, Value[]][]) {
      const { hint } = await raisedBy(tx, (inner) => call(inner, name, values))
      const query = /^select .* from ops\.\w+/.exec(String(hint))?.[0]
      t.ok(query, `${name}: ${hint}`)
      await tx.unsafe(`${query}`)
    }
  })
})
