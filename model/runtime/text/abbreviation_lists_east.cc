#include "model/runtime/text/abbreviation_lists.h"

namespace linnet::model {
namespace {

// clang-format off
constexpr AbbreviationLists kEasternLists[] = {
    {.language = "pl",
     .never_last =
         "prof. dr. hab. mgr. inż. doc. lek. mec. red. ks. bp. abp. kard. św. bł. ul. al. pl. os. gen. płk. ppłk. mjr. kpt. por. "
         "ppor. sierż. kom. nadkom. insp. asp. tzw. tzn. tj. np. m.in. ds. zob. wg. ww. jw. n.p.m. woj. pow. gm. br. hr. st. "
         "ang. łac. niem. franc. ros. zm. ur. śp. vs. ew. Sp. reż. dyr. prez. wyd. tel. adr. zach. wsch. paraf. proj. obj. Sz. "
         "p. Mr. Mrs.",
     .seldom_last = "im. ok. jr. Inc. Ltd. Co. S.A. o.o. z.o.o. cd.",
     .before_number =
         "nr. art. ust. poz. par. lit. str. s. ss. rys. tab. rozdz. t. tom. ryc. il. pn. wt. śr. czw. pt. sob. niedz. §.",
     .closing = "itd. itp. etc. n.e. p.n.e. cdn.",
     .measures = "r. w. zł. gr. tys. mln. mld. proc. godz. sek. pkt. km. kg.",
     .starters =
         "W Nie Na To Ale I Z Po A Może Teraz Czy Co Kiedy Do Tak Ja Już Niech O Bo Od Dlatego Potem Przez Za Jego Gdzie Gdy "
         "Wszyscy Jeszcze Nagle Był Była Było Proszę Kto Dlaczego Jest Ten Ta Te Niestety Jeśli Jeżeli Przy Mimo Nigdy Muszę "
         "Dziękuję Tymczasem Tam Przecież Tylko Większość Nawet Trzech Dopiero Aby Jako Nikt Jak Są On Ona Oni My Wy Ty Tu Dziś "
         "Wczoraj Jednak Zaś Więc Zgodnie Podczas Według Dla Oraz Także Również",
     .ordinals_with_stop = true},
    {.language = "cs",
     .never_last =
         "prof. doc. dr. Dr. Ing. ing. Mgr. mgr. Bc. MUDr. JUDr. PhDr. RNDr. MVDr. arch. p. pí. sl. sv. Sv. gen. plk. pplk. mjr. "
         "kpt. por. npor. kard. ul. nám. tř. tzv. tj. tzn. např. resp. event. cca. ca. popř. příp. zejm. mj. vč. vs. srov. angl. "
         "lat. něm. fr. st. ml. nar. roz. zv. býv. red. řed. tel. Mr. Mrs. hl. okr. kr.",
     .seldom_last = "a.s. s.r.o. o.p.s. Inc. Ltd. jr. CSc. DrSc.",
     .before_number = "č. čís. čl. odst. písm. str. s. obr. tab. kap. roč. odd. par. čp. §. r.",
     .closing = "atd. atp. apod. aj. etc. n.l. př.n.l. Kr.",
     .measures = "tis. mil. mld. hod. min. sek. Kč.",
     .starters =
         "A V Když Ale Na To Co Ve Je K Tak Jsou Za Z Proto Budeme Byla Byl Bylo Byly Po Proč Jak Při O Už Jeho I Ne Pro Ano "
         "Nevím Já Do Také Mám Možná U Ten Ta Ti Dobře Dnes Ráno Že Není Podle Ze Potom Kolik Jen Měl Ještě Nikdy Ona On Oni My "
         "Vy S Se Chci Pak Jeden Kam Přece Od Pokud Protože Kdo Kde Kdy Tato Tento Toto Včera Zde Tady Však Během Mezi",
     .roman_ordinals_with_stop = true,
     .vowelless_words = true},
    {.language = "sk",
     .never_last =
         "prof. doc. dr. Dr. Ing. ing. Mgr. mgr. Bc. MUDr. JUDr. PhDr. RNDr. MVDr. p. sv. Sv. gen. plk. pplk. mjr. kpt. por. "
         "kard. ul. nám. tzv. tj. t.j. napr. resp. cca. ca. príp. popr. vs. porov. angl. lat. nem. fr. st. ml. nar. red. riad. "
         "tel. Mr. Mrs. hl. okr. gr.",
     .seldom_last = "a.s. s.r.o. Inc. Ltd. jr. CSc. DrSc.",
     .before_number = "č. čl. ods. písm. str. s. obr. tab. kap. roč. par. §. r.",
     .closing = "atď. pod. etc. n.l. pr.n.l. Kr.",
     .measures = "tis. mil. mld. hod. min. Sk.",
     .starters =
         "V Po Na Pri Z Jeho To Od Tieto Podľa Keď Potom Bol Bola Bolo Počas Napriek A Väčšina Hoci Medzi Tento Táto Toto Ďalšie "
         "Ak Roku Vo S So Približne Je Podobne Neskôr Aj Do Už Ako Niektoré K Všetky O Má Preto Mal Okrem Tu Tým Iba Nie Ich Dve "
         "Vďaka Dokonca Za Avšak Veľmi Ale On Ona Oni Sú Čo Kto Kde Kedy Prečo Dnes Včera Pretože Tak Teraz Ja Ty My Vy",
     .roman_ordinals_with_stop = true,
     .vowelless_words = true},
    {.language = "hr",
     .never_last =
         "prof. dr. mr. ing. inž. dipl. akad. sv. Sv. gosp. g. gđa. gđica. gen. ul. tzv. tj. npr. odn. tzn. usp. vs. cca. ca. "
         "engl. lat. njem. Mr. Mrs. St. br. vlč. mons. doc. izv. predsj. str.",
     .seldom_last = "red. d.d. d.o.o. Inc. Ltd. jr. st.",
     .before_number = "čl. tab. pogl.",
     .closing = "itd. sl. etc. pr.Kr. Kr.",
     .measures = "tis. mil. mlrd. kn. god.",
     .starters =
         "U Na Međutim Nakon Prema To Kao Iako Za I Osim Ne Također Danas S Sa Od A Ali Mi Kako Kad Kada No Više Dok On Ona Oni "
         "Ipak Prije Sve Ako Zbog Svaka Tako Zato Većina Još Ukupno Uz Ovaj Ova Ovo Sada Drugi Mnogi Nedavno Bila Bio Tijekom "
         "Oko Ukoliko Dvije Je Su Da Što Tko Gdje Ja Ti Vi Nije Nisu Po Do Iz Zašto Jučer",
     .roman_ordinals_with_stop = true,
     .vowelless_words = true},
    {.language = "sl",
     .never_last =
         "prof. dr. mag. doc. ing. inž. dipl. akad. sv. Sv. g. gdč. gen. ul. t.i. tj. npr. oz. prim. vs. ca. angl. lat. nem. Mr. "
         "Mrs. St. red. izr. univ. spec. oec. preds. gl. pribl. št.",
     .seldom_last = "d.d. d.o.o. Inc. Ltd. jr. st.",
     .before_number = "čl. odst. str. sl. tab. pogl. let. tč. tel. l.",
     .closing = "itd. itn. idr. ipd. etc. pr.Kr. Kr.",
     .measures = "tis. mio. mrd. min.",
     .starters =
         "V Če Na In Za To Po Tudi Pri Ta Ne Zato Tako Ker Od Med Kot Leta O Še Toda Že Ko Zaradi Z S Ali Da Ob Verjetno Pa "
         "Glede Sicer Nekaj Vendar Do Prva Vsaj Pred Poleg Ti Iz Šele Zdaj Si Bolj Predvsem Kmalu Zakaj Pomembno Samo Čeprav Se "
         "Te Prav Potem Kar Vsak Seveda Njegov Najprej Je So Jaz On Ona Mi Vi Kaj Kdo Kje Kdaj Danes Včeraj Torej",
     .ordinals_with_stop = true,
     .roman_ordinals_with_stop = true,
     .vowelless_words = true},
    {.language = "ru",
     .never_last =
         "проф. акад. доц. д-р. гр. г-н. г-жа. св. ул. пл. пер. просп. бул. наб. ген. полк. подполк. кап. лейт. см. ср. напр. "
         "т.е. т.н. т.к. т.о. т.ч. ум. букв. англ. фр. нем. лат. греч. итал. исп. яп. рус. ред. изд. прим. примеч. обл. р-н. "
         "пос. дер. с. д. кв. корп. стр. тел. в.ч. зам. пред. о. оз. ст. гл. инж. худ. реж. сост. м-р. соц. ок. н.ст.",
     .seldom_last = "им. род. рук. янв. февр. апр. авг. сент. окт. нояб. дек. ч.",
     .before_number = "рис. табл. п. пп. т. тт. вып. кн. разд. №. абз.",
     .closing = "др. т.д. т.п. пр. проч. н.э. э.",
     .measures = "г. гг. в. вв. тыс. млн. млрд. трлн. руб. коп. долл. чел. экз. шт. мин. сек. час. м. км. мм. кг. мл.",
     .starters =
         "В А С И Я На Это Но Не По Вот После Как Для Однако Мы Так Он Она Они Все У Поэтому Да Нет Если Во К Даже Спасибо Очень "
         "За Здесь Его Её До Здравствуйте При Кроме Когда Эта Этот Эти Через Был Была Было Благодаря Особенно Затем Тем Среди "
         "Иногда Их Ну Теперь Мне Хоть Значит Позднее Один Всего Оно Об О Основные Два Наиболее Одна Также Там Тут Что Кто Где "
         "Почему Из От Под Со Сегодня Вчера Ты Вы Или Тогда Согласно",
     .not_abbreviations = "отд."},
    {.language = "uk",
     .never_last =
         "проф. акад. доц. д-р. гр. ім. св. вул. просп. пров. пл. бул. наб. ген. полк. підполк. кап. див. пор. напр. т.зв. "
         "тобто. англ. фр. нім. лат. грец. рос. укр. ред. прим. обл. р-н. с. смт. буд. кв. корп. тел. зав. заст. о. оз. ст. інж. "
         "худ. реж. бл. м.",
     .seldom_last = "січ. лют. бер. квіт. трав. черв. лип. серп. вер. жовт. лист. груд.",
     .before_number = "стор. мал. рис. табл. гл. п. пп. ч. т. вип. кн. розд. №. абз.",
     .closing = "ін. т.д. т.п. н.е.",
     .measures = "р. рр. тис. млн. млрд. грн. коп. дол. чол. шт. хв. сек. год. км. кг. мл.",
     .starters =
         "У І А На За Це Але Він Вона Вони Воно В Коли До Після Цей Якщо Як Так З Зі Із Не Ні Нині Тому По При Я Та Ця Ці Під "
         "Саме Навіть Про То Бо Чи Можна Можливо Раніше Тобто Наприклад Ви Ми Ти Ніхто Для Одним Багато Всі Усі Хтось Тут "
         "Особливо Мені Те Такі Відповідно Таким Дуже Окрім Були Була Був Було Хоча Також Там Що Хто Де Чому Від Сьогодні Вчора "
         "Або Тоді Його Її Їх Є"},
    {.language = "bg",
     .never_last =
         "проф. акад. доц. д-р. г-н. г-жа. инж. арх. св. ул. бул. пл. кв. гр. с. ген. полк. подп. кап. лейт. гл.серж. серж. т.е. "
         "т.нар. напр. вж. срв. англ. фр. нем. лат. рус. ред. изд. обл. бл. вх. ет. ап. тел. зам. чл. о. Ал. им. в. о-в.",
     .seldom_last = "общ. т.м. т.г. м.г.",
     .before_number = "стр. фиг. табл. гл. т. ал. бр. кн. №.",
     .closing = "др. т.н. пр. н.е. пр.н.е. Хр.",
     .measures = "г. гг. лв. ст. хил. млн. млрд. щ. мин. сек. км. кг. ч. м.",
     .starters =
         "В Това Той Но Не По За След Аз Те Тя То Според Ако Да И От На При Ще А Най С Със Когато Като Какво Много Тези Тази "
         "Този Всеки През Всички До Сега Как Няма Само Може Щом Така Никой Във После Без Защото Още Вероятно Преди Никога Кой "
         "Един Тук Време Ти Каква Бе Беше Три Едва Също Днес Е Остава Почти Нашата Ние Вие Имаше Има Къде Защо Вчера Освен Обаче "
         "Са Към"},
    {.language = "sr",
     .never_last =
         "проф. др. мр. инж. акад. св. г. гђа. ген. ул. тзв. тј. нпр. одн. вс. prof. dr. mr. inž. akad. sv. g. gđa. ul. tzv. tj. "
         "npr. odn.",
     .seldom_last = "d.o.o. a.d.",
     .before_number = "бр. чл. ст. стр. br. čl. st. str.",
     .closing = "итд. сл. itd. sl.",
     .measures = "год. god.",
     .starters =
         "У На Међутим Након Према То Као Иако За И Осим Не Такође Данас С Са Од А Али Ми Како Кад Када Он Она Они Пре Све Ако "
         "Због Да Што Је Су U Na Međutim Nakon Prema To Kao Iako Za I Osim Ne Takođe Danas S Sa Od A Ali Mi Kako Kad Kada On Ona "
         "Oni Pre Sve Ako Zbog Da Što Je Su",
     .roman_ordinals_with_stop = true,
     .vowelless_words = true},
    {.language = "et",
     .never_last =
         "hr. pr. prl. dr. prof. kol. kpt. ltn. mag. nn. nt. s.t. st. tn. pst. mnt. tlf. vrd. sh. ingl. sks. ld. lad. vt. u. "
         "umb. Mr. Mrs. St. nr.",
     .seldom_last = "m.a. e.m.a. Inc. Ltd. jr.",
     .before_number = "lk. joon. tab. art. kd. ptk. p. lg. §. kell.",
     .closing = "jne. jm. jms. jt. jpt. etc. e.Kr. p.Kr. Kr.",
     .measures = "tuh. milj. mld. kr. a.",
     .starters =
         "Kui Ta See Ma Ja Ka Kas Nii Aga Siis Nüüd Kuid Ei Kuna Mis Miks Meie Selle Seda Lisaks Need Minu Nad Kõik On Mul Üks "
         "Tema Nagu Mida Et Näiteks Samuti Mina Kõige Kuidas Sel Praegu Pärast Ometi Kord Või Lõpuks Seega Ainult Keskmine Me "
         "Teine Olen Kuigi Sellest Oma Seni Mitte Iga Seal Siiski Juba Nende Oli Keegi Võib Küll Ühe Ühel Ent Te Sa Kes Kus "
         "Millal Täna Eile Siin",
     .ordinals_with_stop = true,
     .roman_ordinals_with_stop = true},
    {.language = "lv",
     .never_last =
         "prof. dr. Dr. mag. ģen. plkv. kpt. Sv. sv. k-gs. k-dze. t.i. piem. t.s. t.sk. tel. tālr. Tālr. mob. apm. angl. lat. "
         "vāc. Mr. Mrs. St. red. Dz. Kr. Dž. Nr. nr. Ed. Aleks.",
     .seldom_last = "Inc. Ltd. jr. š.g.",
     .before_number = "lpp. p. pp. att. tab. sēj. pl. plkst. pk. d. dz.",
     .closing = "u.c. utt. u.tml. tml. etc. m.ē. p.m.ē.",
     .measures = "tūkst. milj. mljrd. g. gs.",
     .starters =
         "Un Es Bet Kā Ja Viņš Viņa Viņi Tā Tas Tie Vai Lai Pēc Nu Par Man Savukārt Tāpēc Tu Kad Mēs No Taču Ar Nē Tāpat Arī Ir "
         "Tad Uz Tur Tomēr Tikai Tagad Jau Piemēram Kas Kāpēc Mani Turklāt Viņas Vēl Tev Proti Līdz Pat Kur Protams Te Paldies "
         "Jo Tieši Tādējādi Pašlaik Ne Jā Šī Šis Tātad Mums Nav Tās Šo Mūsu Šodien Vakar Kopš Šajā Jūs",
     .ordinals_with_stop = true,
     .roman_ordinals_with_stop = true},
    {.language = "lt",
     .never_last =
         "prof. dr. doc. akad. inž. gen. plk. mjr. kpt. ltn. šv. Šv. p. ponas. gerb. t.y. pvz. vad. plg. angl. lot. lat. vok. "
         "pranc. red. vyr. gyd. adv. kun. vysk. g. al. pl. pr. a. tel. mob. vid. min. est. Mr. Mrs. St. Nr. nr. dir. pirm. sen. "
         "Šiaul.",
     .seldom_last = "d. a.a. Inc. Ltd. jr. r. sav.",
     .before_number = "psl. pav. lent. str. sk. t. sąs. straipsn. punkt. §.",
     .closing = "t.t. pan. kt. etc. pr.Kr. Kr.",
     .measures = "tūkst. mln. mlrd. proc. Lt. ct. val. mėn. m. egz.",
     .starters =
         "Tačiau Tai Ar Todėl Be Jei Iš Jis Ji Jie Mes Dėl Į Kai Taip Vakar Dabar Jeigu Tad Nepaisant O Kas Pavyzdžiui Šis Ši "
         "Nors Šio Kol Tas Ta Pagal Su Būtina Kita Net Tik Jau Tą Galite Pasak Vienas Daug Ne Čia Tam Mūsų Kiti Nuo Kad Aš Tu "
         "Jūs Bet Ir Po Per Prie Apie Šiandien Yra Buvo Kaip Kur Kada Kodėl Šią Šie Taigi Visi",
     .ordinals_with_stop = true},
    {.language = "fi",
     .never_last =
         "hra. rva. nti. tri. prof. dos. maist. ins. kenr. ev. kapt. luutn. pyh. esim. ent. ns. ts. ks. vrt. mm. n. noin. tod. "
         "huom. os. o.s. lat. engl. ruots. saks. ransk. ven. jap. ukr. kreik. synt. k. s. puh. p. vs. v. Mr. Mrs. St. toim. "
         "suom. alk.",
     .seldom_last = "Inc. Ltd. jr. yo. ao.",
     .before_number = "nro. n:o. ss. luku. kuva. taul. art. mom. klo. vol. kohta. §.",
     .closing = "jne. yms. ym. tms. tmv. etc. eKr. jKr.",
     .measures = "milj. mrd. tuh. kpl. min. sek. mk.",
     .starters =
         "Se Hän Kun Jos Tämä Nyt Ja On En Onko Minä Vaikka Sen Ehkä Olen Näin Lisäksi Vuonna He Tämän Miten Yksi Ei Mikä Myös "
         "Ennen Hänen Muita Toinen Siksi Tästä Olin Sitten Kaikki Suurin Itse Olemme Mä Lopulta Tässä Meidän Kyllä "
         "Todennäköisesti Syytä Tällä Koska Ne Ihan Varsinkin Aiemmin Tuli Toisen Kuka Heidän Erityisesti Viime Mutta Me Te Sinä "
         "Missä Miksi Milloin Oli Tänään Eilen Sekä Joten",
     .ordinals_with_stop = true,
     .goes_on_after_mark = true},
    {.language = "hu",
     .never_last =
         "dr. Dr. id. ifj. özv. prof. gr. br. ún. pl. kb. ca. vö. ld. u. Szt. St. mb. alez. ezr. tbk. okl. ang. lat. ném. fr. "
         "Mr. Mrs. kft. ker. tel. megh. szül. vmint. vs.",
     .seldom_last = "Kft. Bt. Rt. Zrt. Nyrt. Kht. Bp. Inc. Ltd. jr. i.e. sz. e. d.",
     .before_number = "o. old. p. pp. ábr. tábl. kt. köt. par. §. bek. em. fsz.",
     .closing = "stb. etc. i.sz.",
     .measures = "Ft. mrd. évf.",
     .starters =
         "A Az Ez Nem Így Ennek Ha Ezért Pedig És Mint De Ma S Egy Amikor Azt Ami Úgy Hiába Persze Ő Ők Tegnap Olyan Minden Van "
         "Mert Aki Ezzel Bár Egyébként Én Te Mi Ti Ugyanakkor Vagyis Egyes Meg Idén Ezek Hiszen Két Ki Mivel Akkor Különösen Ezt "
         "Ráadásul Ilyen E Közülük Még Több Ám Miként Jó Tavaly Sokan Igaz Mégis Aztán Új Nemcsak Erre Éppen Ebben Miért Nagyon "
         "Igen Azonban Hogy Hol Itt Ott Volt",
     .ordinals_with_stop = true,
     .roman_ordinals_with_stop = true,
     .goes_on_after_mark = true},
    {.language = "tr",
     .never_last =
         "Dr. Prof. Doç. Yrd. Av. Op. Uzm. Müh. Mim. Gen. Org. Korg. Tümg. Tuğg. Alb. Yb. Bnb. Yzb. Sn. Hz. Bn. Sok. Cad. cad. "
         "Mah. mah. Bul. bul. Apt. apt. No. no. yy. bkz. krş. örn. ör. çev. ed. ört. Mr. Mrs. St. tel. Tel. İst. Ank. İng. Alm. "
         "Fr. Ar. Far. Yun.",
     .seldom_last = "vs. A.Ş. Ltd. Şti. T.C. Inc. jr. s.a.v. T.A.Ş.",
     .before_number = "s. ss. sf. sy. say. cilt. md. mad. Şek. şek. Tab. fık.",
     .closing = "vb. vd. M.Ö. M.S.",
     .starters =
         "Bu Bir O Ama Ben Ne Her Ancak Şimdi Benim Sen Sonra Daha Çok Çünkü Oysa Hiç Biz Onun Hem Onu Yine Bana Eğer En Aslında "
         "Artık Bütün Belki Beni Yani Öyle Ya İşte Ve Bunlar Böylece İlk Buna İki Fakat Herkes Sana Siz Bugün Biraz Nasıl Tam "
         "Yoksa Önce Tabii Ayrıca Böyle Ona Bunu Kim Aynı Bunun Hele Neden Bazı Onlar Şu Nerede Dün Evet Hayır De Da İçin Var "
         "Yok",
     .ordinals_with_stop = true,
     .goes_on_after_mark = true},
    {.language = "el",
     .never_last =
         "κ. κα. κος. κ.κ. δρ. Δρ. καθ. αγ. Αγ. βλ. π.χ. δηλ. αρ. τηλ. οδ. λεωφ. στρ. συντ. ταγμ. λοχ. πρβλ. σελ. αγγλ. λατ. "
         "γαλλ. γερμ. εκδ. επιμ. μτφρ. Mr. Mrs. St. Dr. λ.χ.",
     .seldom_last = "Α.Ε. Ε.Π.Ε. π.μ. μ.μ. Inc. Ltd.",
     .before_number = "σ. σσ. άρθ. αρθ. τόμ. κεφ. παρ. εικ. πίν. τ. εδ.",
     .closing = "κ.λπ. κλπ. κ.ά. κ.α. κ.τ.λ. κτλ. κ.ο.κ. π.Χ. μ.Χ.",
     .measures = "εκατ. δισ. χιλ. τ.μ. χλμ.",
     .starters =
         "Η Το Ο Οι Θα Επίσης Σε Ωστόσο Στο Στη Στον Στους Δεν Από Για Με Τα Στις Στην Αυτό Αυτή Αυτός Κατά Σύμφωνα Είναι Στα "
         "Την Τη Τον Τους Τις Μετά Πρέπει Εάν Έτσι Εδώ Ως Αν Όσον Τέλος Υπάρχει Όπως Τούτο Επομένως Σήμερα Πρόκειται Μέχρι "
         "Συνεπώς Και Αλλά Δεύτερον Φυσικά Όμως Εν Εμείς Παράλληλα Μια Όταν Δύο Επιπλέον Μόνο Αντί Μάλιστα Ήταν Πριν Έχει Μία "
         "Όλα Ένας Ένα Που Ποιος Πού Πότε Γιατί Χθες Ναι Όχι Εγώ Εσύ"},
    {.language = "ar", .never_last = "د. أ. أ.د. م. ص.ب."},
    {.language = "fa", .never_last = "د. ر.ک."},
    {.language = "he", .never_last = "פרופ."},
    {.language = "hi", .never_last = "डॉ. प्रो. श्री. कु. मि. पं. सु. रु."},
};
// clang-format on

}  // namespace

std::span<const AbbreviationLists> EasternAbbreviations() { return kEasternLists; }

}  // namespace linnet::model
