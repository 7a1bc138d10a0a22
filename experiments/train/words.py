"""Word lists for the generated documents, and small generators over them.

Everything takes a `random.Random`, so a document is a function of its seed.
"""

FIRST = """James Mary Robert Patricia John Jennifer Michael Linda David Elizabeth William Barbara Richard Susan Joseph
Jessica Thomas Sarah Christopher Karen Charles Lisa Daniel Nancy Matthew Betty Anthony Sandra Mark Margaret Donald Ashley
Steven Kimberly Andrew Emily Paul Donna Joshua Michelle Kenneth Carol Kevin Amanda Brian Melissa Timothy Deborah Ronald
Stephanie George Rebecca Jason Laura Edward Helen Jeffrey Sharon Ryan Cynthia Jacob Kathleen Nicholas Amy Gary Angela Eric
Shirley Jonathan Anna Stephen Brenda Larry Pamela Justin Emma Scott Nicole Brandon Samantha Benjamin Katherine Samuel
Christine Gregory Debra Alexander Rachel Patrick Carolyn Frank Janet Raymond Maria Jack Olivia Dennis Heather Jerry Diane
Tyler Julie Aaron Joyce Jose Victoria Adam Ruth Nathan Virginia Henry Lauren Zachary Kelly Douglas Christina Peter Joan Kyle
Evelyn Noah Judith Ethan Andrea Jeremy Hannah Walter Megan Christian Cheryl Keith Jacqueline Roger Martha Terry Madison
Austin Teresa Sean Gloria Gerald Sara Carl Janice Harold Ann Dylan Kathryn Arthur Abigail Lawrence Sophia Jordan Frances
Jesse Jean Bryan Alice Billy Judy Bruce Isabella Gabriel Julia Joe Grace Logan Amber Alan Denise Juan Danielle Albert
Marilyn Willie Beverly Elijah Charlotte Wayne Natalie Randy Theresa Vincent Diana Mason Brittany Roy Doris Ralph Kayla
Bobby Alexis Russell Lori Bradley Marie Philip Eugene Ingrid Sven Lars Freya Bjorn Astrid Nils Greta Hans Heidi Klaus Ute
Jürgen Pierre Camille Luc Amélie René Chloé Hugo Inès Carlos Lucía Diego Sofía Javier Carmen Pablo Elena Mateo Valeria Luis
Giulia Marco Francesca Luca Chiara Paolo Bianca Ivan Olga Dmitri Natasha Sergei Irina Boris Yelena Jan Zuzanna Piotr Kasia
Anika Raj Priya Arjun Meera Vikram Lakshmi Sanjay Divya Rohan Aisha Omar Fatima Yusuf Leila Hassan Zainab Khalid Noor Amir
Wei Mei Jun Li Hana Kenji Yuki Hiroshi Sakura Takeshi Akira Min Ji-woo Soo Hyun Minh Linh Thanh Kofi Ama Kwame Abena
Chidi Ngozi Tunde Zola Thabo Lindiwe Sipho Naledi Aroha Tane Kai Leilani Mateus Beatriz João Rafaela Thiago""".split()

LAST = """Smith Johnson Williams Brown Jones Garcia Miller Davis Rodriguez Martinez Hernandez Lopez Gonzalez Wilson Anderson
Thomas Taylor Moore Jackson Martin Lee Perez Thompson White Harris Sanchez Clark Ramirez Lewis Robinson Walker Young Allen
King Wright Scott Torres Nguyen Hill Flores Green Adams Nelson Baker Hall Rivera Campbell Mitchell Carter Roberts Gomez
Phillips Evans Turner Diaz Parker Cruz Edwards Collins Reyes Stewart Morris Morales Murphy Cook Rogers Gutierrez Ortiz
Morgan Cooper Peterson Bailey Reed Kelly Howard Ramos Kim Cox Ward Richardson Watson Brooks Chavez Wood James Bennett Gray
Mendoza Ruiz Hughes Price Alvarez Castillo Sanders Patel Myers Long Ross Foster Jimenez Powell Jenkins Perry Russell
Sullivan Bell Coleman Butler Henderson Barnes Fisher Vasquez Simmons Graham Murray Ford Castro Marshall Owens Harrison
Fernandez McDonald Woods Washington Kennedy Wells Vargas Henry Chen Freeman Webb Tucker Guzman Burns Crawford Olson Simpson
Porter Hunter Gordon Mendez Silva Shaw Snyder Mason Dixon Munoz Hunt Hicks Holmes Palmer Wagner Black Robertson Boyd Rose
Stone Salazar Fox Warren Mills Meyer Rice Schmidt Garza Daniels Ferguson Nichols Stephens Soto Weaver Ryan Gardner Payne
Grant Dunn Kelley Spencer Hawkins Doe Müller Schneider Fischer Weber Becker Hoffmann Schäfer Koch Bauer Richter Wolf
Lindqvist Johansson Eriksson Larsen Hansen Nielsen Petrov Ivanova Sokolov Kowalski Nowak Rossi Ferrari Esposito Bianchi
Dubois Laurent Moreau Lefèvre Tanaka Suzuki Sato Yamamoto Watanabe Park Choi Wang Zhang Liu Singh Sharma Gupta Khan Ahmed
Hussain Okafor Adeyemi Mensah Dlamini Nkosi O'Brien O'Connor MacLeod van Dijk de Vries Santos Pereira Costa Almeida""".split()

CITIES = """London Paris Berlin Madrid Rome Vienna Zurich Geneva Oslo Stockholm Copenhagen Helsinki Warsaw Prague Budapest
Athens Lisbon Dublin Brussels Amsterdam Munich Hamburg Milan Naples Barcelona Valencia Porto Lyon Marseille Boston Chicago
Denver Seattle Portland Austin Dallas Houston Phoenix Atlanta Miami Detroit Springfield Madison Toronto Montreal Vancouver
Tokyo Osaka Kyoto Seoul Beijing Shanghai Mumbai Delhi Chennai Singapore Jakarta Bangkok Hanoi Sydney Melbourne Auckland
Lagos Nairobi Accra Cairo Lima Bogotá Santiago Quito Havana Denver Riverside Fairview Georgetown Salem Bristol Leeds
Glasgow Cardiff Oxford Cambridge Bath York Reykjavik Tallinn Riga Vilnius Zagreb Sofia Bern Basel Lausanne Lucerne""".split()
COUNTRIES = """USA Canada Mexico Brazil Argentina Chile Peru Germany France Italy Spain Portugal Switzerland Austria Poland
Norway Sweden Denmark Finland Iceland Ireland UK Greece Turkey Egypt Kenya Ghana Nigeria India China Japan Korea Vietnam
Thailand Indonesia Australia Netherlands Belgium""".split()
STREETS = """Main Oak Maple Pine Cedar Elm Park Lake Hill River Church High Station Mill School Bridge King Queen Market
Washington Lincoln Garden Spring Meadow Forest Sunset Valley Harbor Willow Chestnut""".split()
STREET_KIND = ["St", "Street", "Ave", "Avenue", "Road", "Rd", "Lane", "Drive", "Blvd", "Way", "Court", "Place"]
JOBS = """Software Engineer|Teacher|Nurse|Doctor|Accountant|Carpenter|Plumber|Electrician|Chef|Waiter|Lawyer|Architect|
Graphic Designer|Data Scientist|Product Manager|Project Manager|Sales Manager|Marketing Director|Web Developer|Librarian|
Journalist|Photographer|Pilot|Firefighter|Police Officer|Mechanic|Dentist|Pharmacist|Veterinarian|Biologist|Chemist|
Physicist|Mathematician|Economist|Translator|Writer|Editor|Musician|Painter|Actor|Farmer|Gardener|Baker|Butcher|Tailor|
Barber|Cashier|Clerk|Receptionist|Secretary|Consultant|Analyst|Financial Advisor|Social Worker|Psychologist|Surgeon|
Paramedic|Truck Driver|Bus Driver|Train Conductor|Welder|Roofer|Civil Engineer|Mechanical Engineer|Professor|Researcher|
Student|Security Guard|Janitor|Florist|Jeweler|Geologist|Astronomer|Historian|Technical Writer|QA Tester|System Administrator|
Network Engineer|Head of Marketing|Human Resources Manager|Chief Executive Officer|Logistics Coordinator|Bartender|
Fitness Coach|Yoga Instructor|Real Estate Agent|Insurance Agent|Travel Agent|Interior Designer|Fashion Designer|
Game Developer|Machine Learning Engineer|Optician|Radiologist|Midwife|Judge|Diplomat|Surveyor|Zookeeper""".replace("\n", "").split("|")
LEVEL = ["Senior", "Junior", "Lead", "Assistant", "Chief", "Principal", "Deputy", "Head", "Freelance", "Retired"]
HOBBIES = """reading hiking swimming chess painting cooking cycling running gardening photography fishing dancing singing
climbing skiing knitting gaming traveling yoga tennis soccer basketball baking sailing surfing writing drawing pottery
birdwatching camping archery astronomy""".split()
COLORS = """red green blue yellow orange purple black white gray brown pink cyan magenta silver gold teal navy olive maroon
beige turquoise violet crimson indigo""".split()
ANIMALS = """cat dog horse rabbit parrot turtle hamster goldfish snake lizard goat sheep cow pig duck chicken owl eagle
wolf bear fox lion tiger elephant giraffe penguin dolphin whale shark otter badger raven falcon spider bee""".split()
FOODS = """apple banana cherry grape lemon mango orange peach pear plum bread butter cheese milk egg rice pasta pizza soup
salad tomato potato carrot onion garlic pepper salt sugar flour honey chocolate coffee tea juice cake cookie pie sandwich
burger chicken beef fish shrimp tofu beans corn spinach basil ginger cinnamon""".split()
THINGS = """table chair lamp book pen pencil notebook phone laptop keyboard mouse monitor camera watch clock bottle cup plate
bowl knife fork spoon backpack wallet umbrella jacket shirt shoes socks hat gloves scarf bicycle car truck train ticket
letter box basket candle blanket pillow mirror window door key lock hammer nail saw drill rope ladder bucket brush paint
guitar piano drum violin ball racket helmet tent compass map lantern""".split()
ADJ = """small large big tiny old new young bright dark heavy light quick slow quiet loud warm cold soft hard smooth rough
clean dirty cheap expensive rare common simple complex strong weak happy sad brave calm gentle wild ancient modern broken
golden silver wooden wireless portable digital premium classic compact smart fresh organic spicy sweet hidden lost
secret final grand royal free open""".split()
NOUN = """report system project message order invoice account record session event update request response value item list
group team member office building garden river mountain forest ocean island bridge tower castle village market school
library museum station airport hotel kitchen engine network server client device sensor signal number letter word story
song film picture game puzzle prize contest journey season winter summer spring autumn morning evening night week month
year hour light shadow storm wind rain snow fire stone metal paper glass machine tool window door road field""".split()
VERB = """builds makes finds takes gives sends reads writes opens closes starts stops moves holds keeps brings shows plays
sells buys paints cooks repairs checks tests counts carries follows leads protects explores visits studies teaches""".split()
COMPANY_END = ["Inc", "Inc.", "LLC", "Ltd", "GmbH", "AG", "Corp", "Group", "Labs", "Systems", "Solutions", "Partners", "& Co", "Studio", "Works"]
TLD = ["com", "org", "net", "io", "edu", "co.uk", "de", "ch", "fr", "dev", "info"]
MAIL = ["example", "mail", "post", "inbox", "acme", "globex", "initech", "northwind", "contoso", "school", "office", "cloudmail"]
MONTHS = ["January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November", "December"]
LANGS = ["en", "de", "fr", "es", "it", "pt", "nl", "sv", "pl", "ru", "ja", "ko", "zh", "ar", "hi", "tr"]
LANG_NAMES = ["English", "German", "French", "Spanish", "Italian", "Portuguese", "Dutch", "Swedish", "Polish", "Russian", "Japanese", "Korean", "Chinese", "Arabic", "Hindi", "Turkish"]
GENRES = ["drama", "comedy", "thriller", "horror", "romance", "fantasy", "science fiction", "mystery", "biography", "history", "poetry", "adventure", "documentary", "western", "musical"]
CURRENCY = ["USD", "EUR", "GBP", "CHF", "JPY", "CAD", "AUD", "SEK", "INR"]
STATUS = ["active", "inactive", "pending", "completed", "cancelled", "shipped", "open", "closed", "draft", "approved", "failed", "running", "ok", "error", "unknown", "new"]

ARMOR = ["leather", "chainmail", "plate"]
WEAPON = ["sword", "axe", "bow"]
RPG_CLASS = """Rogue Ranger Fighter Warrior Paladin Wizard Sorcerer Cleric Druid Monk Bard Barbarian Assassin Knight Archer
Thief Warlock Hunter Duelist Scout Swashbuckler Berserker Gladiator Samurai Ninja Mercenary Squire Champion Guardian
Shaman Alchemist Necromancer Templar Outlaw Bandit Pirate Corsair Marauder Sentinel Warden Spellblade Beastmaster""".split()
RPG_PRE = """Elven Dwarven Human Halfling Orc Half-Elf Gnome Shadow Royal Forest Desert Storm Iron Blood Moon Sun Dark Light
Frost Fire Sea Sky Wandering Exiled Arcane Holy Wood Dragon Night""".split()
RPG_FIRST = """Aria Thorin Kel Lyra Bram Seraphina Eldrin Kael Mira Zephyr Orin Tamsin Rurik Isolde Fenn Garrick Nyx Talia
Draven Elowen Corvin Sable Rowan Vex Alaric Brielle Caelum Dagna Eryn Faelan Gwyn Hale Ilyana Jorah Kira Leif Morrigan
Nerys Osric Perrin Quill Ravenna Soren Thalia Ulric Vesper Wren Xander Yara Zara Borin Durin Lia Finn Arwen Gimrok
Sigrid Torvald Ayla Ash Nim""".split()
RPG_LAST = """Swiftblade Ironfist Stormwind Shadowstep Nightwhisper Oakenshield Brightarrow Quickfoot Silverleaf Stonehand
Blackthorn Fireforge Moonshadow Windrunner Ravenclaw Wolfbane Goldmane Thornwood Frostbeard Dawnbringer Steelheart
Lightfoot Greycloak Bloodaxe Hawkeye Emberfall Riverborn Duskwalker Starfall Copperpot Grimm Ashford Vale Holt Crowe""".split()
RPG_ITEM = """dagger lockpicks rope torch lantern shield helmet cloak boots gloves ring amulet potion scroll map compass bedroll
rations waterskin quiver arrows whetstone ale bread cheese flute lute dice coins gem mirror chalk hook ladder net spyglass
tent blanket journal ink quill herbs bandages elixir bomb oil tinderbox key crown horn banner bracers belt pouch
crossbow spear staff wand orb rune totem""".split()
RPG_ADJ = """healing silver golden magic ancient cursed enchanted rusty sharp steel iron wooden hidden elven dwarven leather
crystal holy dark glowing small heavy travel thieves' mana stamina fire frost lucky old""".split()


def pick(r, xs):
    return xs[int(r.random() * len(xs))]


SYL_A = "b br c ch d dr f g gr h j k kr l m n p r s sh st t th tr v w z".split()
SYL_V = "a e i o u a e i o ai ea ia ou".split()
SYL_B = "l n r s t x th nd rn ck m".split()


def made_name(r):
    """A name from syllables, so that names cannot all be learned by heart."""
    out = ""
    for _ in range(1 + int(r.random() * 2)):
        out += pick(r, SYL_A) + pick(r, SYL_V)
    out += pick(r, SYL_B) if r.random() < 0.6 else pick(r, SYL_V)
    return out.capitalize()


def first(r):
    return made_name(r) if r.random() < 0.12 else pick(r, FIRST)


def last(r):
    return made_name(r) if r.random() < 0.12 else pick(r, LAST)


def person(r):
    x = r.random()
    if x < 0.80:
        return first(r) + " " + last(r)
    if x < 0.88:
        return first(r) + " " + pick(r, "ABCDEFGHIJKLMNOPRSTW") + ". " + last(r)
    if x < 0.92:
        return pick(r, ["Dr. ", "Mr. ", "Mrs. ", "Ms. ", "Prof. "]) + first(r) + " " + last(r)
    return first(r)


def job(r):
    j = pick(r, JOBS)
    if r.random() < 0.18:
        j = pick(r, LEVEL) + " " + j
    if r.random() < 0.08:
        j = j.lower()
    return j


def company(r):
    x = r.random()
    if x < 0.4:
        return last(r) + " " + pick(r, COMPANY_END)
    if x < 0.7:
        return pick(r, ADJ).capitalize() + " " + pick(r, NOUN).capitalize() + " " + pick(r, COMPANY_END)
    if x < 0.85:
        return last(r) + " & " + last(r)
    return pick(r, NOUN).capitalize() + pick(r, NOUN).capitalize()


def phrase(r):
    x = r.random()
    if x < 0.3:
        return pick(r, ADJ) + " " + pick(r, NOUN)
    if x < 0.6:
        return "The " + pick(r, ADJ).capitalize() + " " + pick(r, NOUN + THINGS + ANIMALS).capitalize()
    if x < 0.8:
        return pick(r, NOUN).capitalize() + " of the " + pick(r, NOUN + ANIMALS).capitalize()
    return pick(r, ADJ).capitalize() + " " + pick(r, NOUN + THINGS).capitalize()


def sentence(r):
    s = pick(r, ["The", "A", "This", "Every", "Our", "My", "One"]) + " "
    if r.random() < 0.6:
        s += pick(r, ADJ) + " "
    s += pick(r, NOUN + ANIMALS + THINGS) + " " + pick(r, VERB) + " " + pick(r, ["the", "a", "many", "no", "some"]) + " "
    if r.random() < 0.5:
        s += pick(r, ADJ) + " "
    s += pick(r, NOUN + THINGS + FOODS)
    if r.random() < 0.4:
        s += " " + pick(r, ["in", "near", "for", "without", "after", "under"]) + " the " + pick(r, NOUN)
    return s + pick(r, [".", ".", ".", "!", ""])


def email(r):
    a, b = first(r).lower(), last(r).lower().replace("'", "")
    u = pick(r, [a + "." + b, a + b, a[0] + b, a, a + "_" + b, a + str(r.randint(1, 999)), b + "." + a, a + "-" + b])
    d = pick(r, MAIL)
    if r.random() < 0.25:
        d = last(r).lower().replace("'", "") + pick(r, ["", "-" + pick(r, NOUN), "." + pick(r, MAIL)])
    return u + "@" + d + "." + pick(r, TLD)


def phone(r):
    d = lambda n: "".join(pick(r, "0123456789") for _ in range(n))
    return pick(r, ["+1-555-" + d(3) + "-" + d(4), "555-" + d(4), "(" + d(3) + ") " + d(3) + "-" + d(4), "+41 " + d(2) + " " + d(3) + " " + d(2) + " " + d(2), "+49 " + d(3) + " " + d(7), "+44 20 " + d(4) + " " + d(4), "0" + d(9)])


def date(r):
    return "%04d-%02d-%02d" % (r.randint(1940, 2035), r.randint(1, 12), r.randint(1, 28))


def time(r):
    return "%02d:%02d" % (r.randint(0, 23), r.randint(0, 59)) + (":%02d" % r.randint(0, 59) if r.random() < 0.6 else "")


def datetime(r):
    s = date(r) + "T" + "%02d:%02d:%02d" % (r.randint(0, 23), r.randint(0, 59), r.randint(0, 59))
    if r.random() < 0.25:
        s += "." + str(r.randint(0, 999)).zfill(3)
    return s + pick(r, ["Z", "Z", "Z", "+00:00", "+01:00", "+02:00", "-05:00", "-08:00", "+05:30", "+09:00"])


def street(r):
    return str(r.randint(1, 9999 if r.random() < 0.3 else 199)) + " " + pick(r, STREETS if r.random() < 0.8 else LAST) + " " + pick(r, STREET_KIND)


def slug(r):
    return pick(r, ADJ) + pick(r, "-_.") + pick(r, NOUN)


def url(r):
    return pick(r, ["https://", "https://", "http://"]) + pick(r, ["www.", "", "api.", "docs."]) + pick(r, NOUN + MAIL) + "." + pick(r, TLD) + pick(r, ["", "/", "/" + pick(r, NOUN), "/" + pick(r, NOUN) + "/" + str(r.randint(1, 9999)), "/" + slug(r) + ".html"])


def hexid(r, n):
    return "".join(pick(r, "0123456789abcdef") for _ in range(n))
